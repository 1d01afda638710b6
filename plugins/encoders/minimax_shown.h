// What nodes of MiniMax H3 show the model in a conditioning (plugins/blocks/minimax_latents.h):
// pictures and sounds as latents of its own autoencoders, clean; the same by shapes before a run;
// and the latent of a video and its sound that it draws. One call's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/node.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::encoders {

// Red, green and blue of the first pictures of an IMAGE in another size, through bytes: (count, h,
// w, 3) f32 in host memory. is_cropped: of the part in the middle that has the aspect of the size.
Tensor scaled_pictures(Context& ctx, const Tensor& image, std::int64_t count,
                       const blocks::GridSize& size, bool is_cropped);
// Bytes of host memory that it takes, of pictures of a shape, and what encodes them.
std::uint64_t scaled_bytes(const Shape& image, std::int64_t count, const blocks::GridSize& size);

// Throws where the VAE codes other videos, or is none of sounds.
void check_clips(const Value& vae);
void check_sounds(const Value& audio_vae);

// The latent of pictures (F, h, w, 3) in host memory.
Record shown_clip(Context& ctx, const Value& vae, const Tensor& pictures);
// Of so many pictures of a size, with the calls; none where it is not known yet.
std::optional<Shape> tell_clip(Infer& question, const Value& vae, std::int64_t pictures,
                               const blocks::GridSize& size);
// The latent (1, C, 2, T) of the first sound of an AUDIO. port: its name.
Record shown_sound(Context& ctx, const Value& audio_vae, const Value& audio,
                   const std::string& port);
std::optional<Shape> tell_sound(Infer& question, const Value& audio_vae, const Shape& waveform,
                                std::int64_t rate);

// Records of reference_latents and reference_sounds.
struct MinimaxShown {
  std::vector<Value> clips = {}, sounds = {};
  double start = 0;  // of the video, behind what stands before it; 0: nothing does
};
// Behind what each entry of a CONDITIONING carries already.
Value with_shown(const Value& list, const MinimaxShown& shown);

// The LATENT of so many pictures and their sound, of zeros.
Value empty_video(Context& ctx, std::int64_t pictures, const blocks::GridSize& size);
void infer_empty_video(Infer& question, const Output<Value>& latent, std::int64_t pictures,
                       const blocks::GridSize& size);

}  // namespace heddle::encoders
