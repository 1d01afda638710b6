// Videos through an autoencoder that codes clips: one whose sides have the setting `clips`
// (plugins/vae/h3_video.h). Each clip of frames is coded by itself. A decoder is given the first
// cells of the clip that follows as well, and what it makes of these goes over into what is made of
// that clip itself. Within a clip, tiles of rows and columns are coded one after another and go
// over into each other. A device holds two tiles at most, whatever the video's size: while one is
// read the next one is decoded, and several devices take tiles in turn (chunk_rounds.h). The
// numbers are the same; frames come together in host memory, in f32. One call's thread, but for
// what is told before a run.
#pragma once

#include <heddle/node.hpp>

#include <functional>
#include <optional>
#include <vector>

#include "plugins/blocks/autoencoder.h"

namespace heddle::vae {

// Pixels of a tile's sides, and how many of them tiles share at least. They are rounded to whole
// cells.
struct ClipTiling {
  std::int64_t side = 0, overlap = 0;
};

// Whether this VAE codes clips.
bool codes_clips(const Value& vae);
// As the model was published.
ClipTiling published_tiling(const Value& vae);

// Frames (B F, H, W, 3) from 0 to 1, in host memory, of the samples (B, C, T, h, w) or (B, C, h, w)
// of a LATENT; the videos of a batch go one after another. 17 n + 5 frames for 5 n + 2 cells of
// time; a single one for one. Throws where the channels are not the autoencoder's, or tiles share
// all of their pixels. They arrive in parts (heddle/parts.hpp), as the call's output of this
// number.
Tensor decoded_clips(Context& ctx, const Value& vae, const Value& latent, const ClipTiling& tiling,
                     heddle_port_index output);
// None where these are no samples.
std::optional<Shape> decoded_clips_shape(const Shape& samples, const Autoencoder& autoencoder);
void tell_decoded_clips(Infer& question, const Value& vae, const Shape& samples,
                        const Autoencoder& autoencoder, const ClipTiling& tiling);

// The means (1, C, T, h, w) of pictures (F, H, W, 3) from 0 to 1, a video, whose sides whole cells
// cover. The last one is repeated until there are whole clips; of the latent the last three cells
// of time are left out. Of one picture there is one. Throws where there is none.
Tensor encoded_clips(Context& ctx, const Value& vae, const Tensor& pictures,
                     const Autoencoder& autoencoder, const ClipTiling& tiling);
// The same of pictures that are made clip by clip.
struct ClipPictures {
  Shape shape;  // of all of them
  // Those from `begin` on, (count, H, W, 3) on the call's device; each once, in order, and those
  // that found no room once more.
  std::function<Tensor(std::int64_t begin, std::int64_t count)> made;
};
Tensor encoded_clips(Context& ctx, const Value& vae, const ClipPictures& pictures,
                     const Autoencoder& autoencoder, const ClipTiling& tiling);
Shape encoded_clips_shape(const Shape& pictures, const Autoencoder& autoencoder);
// The shapes of `image` of all calls of the encoder, and bytes of host memory beside the pictures.
// None where tiles do not get on.
struct EncoderCalls {
  std::vector<Shape> images;
  std::uint64_t host_bytes = 0;
};
EncoderCalls encoder_calls(const Shape& pictures, const Autoencoder& autoencoder,
                           const ClipTiling& tiling);
void tell_encoded_clips(Infer& question, const Value& vae, const Shape& pictures,
                        const Autoencoder& autoencoder, const ClipTiling& tiling);

// What nodes that make such frames, or the latent of such pictures, tell before a run.
template <class Out>
void infer_decoded_clips(Infer& question, const Out& image, const Value& vae, const Shape& samples,
                         const Autoencoder& autoencoder, const ClipTiling& tiling) {
  const std::optional<Shape> frames = decoded_clips_shape(samples, autoencoder);
  if (!frames) return;  // the run says why
  check_channels(samples[1], autoencoder);
  question.out(image, "", HEDDLE_F32, *frames);
  tell_decoded_clips(question, vae, samples, autoencoder, tiling);
}
template <class Out>
void infer_encoded_clips(Infer& question, const Out& latent, const Value& vae,
                         const Shape& pictures, const Autoencoder& autoencoder,
                         const ClipTiling& tiling) {
  if (pictures[0] < 1) return;  // the run says why
  const std::int64_t side = autoencoder.downscale;
  const Shape covered{pictures[0], autoencoder.cells(pictures[1]) * side,
                      autoencoder.cells(pictures[2]) * side, autoencoder.colours};
  question.out(latent, "samples", HEDDLE_F32, encoded_clips_shape(covered, autoencoder));
  tell_encoded_clips(question, vae, covered, autoencoder, tiling);
}

}  // namespace heddle::vae
