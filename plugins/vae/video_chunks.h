// Videos through an autoencoder that has stages for them (decoder_chunks, encoder_chunks of a VAE,
// heddle/diffusion/values.h): chunk by chunk, each stage with what it kept of the chunk before.
// Frames come together in host memory, so a device holds one chunk, whatever the video's length.
// One call's thread, but for what is told before a run.
#pragma once

#include <heddle/node.hpp>

#include <functional>
#include <string>
#include <vector>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/chunk_rounds.h"
#include "plugins/blocks/resample.h"

namespace heddle::vae {

// Frames of a video, and of its latent: the first is coded by itself.
struct VideoLength {
  std::int64_t downscale = 1;  // frames of a video for each of the latent, but for the first
  std::int64_t frames_of(std::int64_t cells) const;
  // Those at the end that make no whole one are left out, as in ComfyUI.
  std::int64_t cells_of(std::int64_t frames) const { return 1 + (frames - 1) / downscale; }
};
VideoLength video_length(const Value& vae);

// A side whose chunks all pass all stages.
class VideoSide final : public ChunkSide {
 public:
  explicit VideoSide(const Value& chunks);
  Tensor next(Context& ctx, Tensor chunk) override;

 private:
  struct Stage {
    Value first, next;
    std::string input;  // what it calls that which the stage before made
    Value kept = {};    // of the chunk before; a record
  };
  std::vector<Stage> stages_;
  bool is_first_ = true;
};

// sides: decoder_chunks or encoder_chunks of a VAE.
void code_chunks(Context& ctx, const Value& sides, const ChunkRounds& rounds);

// A latent of videos: (B, C, T, h, w). Of one frame it is one of pictures, which this makes of it.
// Throws where it is empty, and where the autoencoder has no stages for more frames and does not
// decode videos at once.
bool is_of_frames(const Shape& samples);
Value without_frames(const Value& latent, const Value& vae);

// Frames (B F, H, W, colours) from 0 to 1, in host memory, of the samples (B, C, T, h, w) of a
// LATENT with T > 1. The videos of a batch go one after another. They arrive in parts
// (heddle/parts.hpp), as the call's output of this number: chunk by chunk.
Tensor decoded_frames(Context& ctx, const Value& vae, const Value& latent,
                      heddle_port_index output);
Shape frames_shape(const Shape& samples, const Value& vae, const Autoencoder& autoencoder);
void tell_decoded_frames(Infer& question, const Value& vae, const Shape& samples,
                         const Autoencoder& autoencoder);

// Tells of the calls of `count` chunks of a video, as code_chunks() (chunk_rounds.h) makes them;
// cells: of a frame of the latent. Gives what the side keeps of a chunk, in bytes.
std::uint64_t tell_chunks(Infer& question, const Value& chunks, const blocks::GridSize& cells,
                          std::int64_t downscale, std::int64_t count);
// The same of those that are made where there is no room for larger ones.
std::uint64_t tell_least_chunks(Infer& question, const Value& chunks, const blocks::GridSize& cells,
                                std::int64_t downscale, std::int64_t count);

// Whether a batch of so many pictures is a video of this autoencoder.
bool is_video(std::int64_t pictures, const Value& vae);
// The means (1, C, T, h, w) of pictures (F, H, W, colours) from 0 to 1, whose sides whole cells
// cover. part: of the node's progress, that this is.
struct ProgressPart {
  double begin = 0, end = 1;
};
Tensor encoded_frames(Context& ctx, const Value& vae, const Tensor& pictures,
                      const Autoencoder& autoencoder, const ProgressPart& part = {});
// The same of a latent of this shape. pictures(begin, end): these, where the device can read them.
Tensor coded_frames(Context& ctx, const Value& vae, const Shape& latent, const ProgressPart& part,
                    const std::function<Tensor(std::int64_t, std::int64_t)>& pictures);
Shape latent_frames_shape(const Shape& pictures, const Value& vae, const Autoencoder& autoencoder);
void tell_encoded_frames(Infer& question, const Value& vae, const Shape& latent,
                         const Autoencoder& autoencoder);

}  // namespace heddle::vae
