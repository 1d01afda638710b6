// What VACE of Wan reads beside the point (its inputs "vace" and "vace_strength"): of each context
// that nodes gave the conditioning, two latents of a video, of what is kept and of what is drawn
// anew, and a mask with a channel for each pixel of a cell. As ComfyUI gives it: in the model's
// units, contexts behind each other. One call's thread.
#pragma once

#include "concat_input.h"

namespace heddle::samplers {

// Of a conditioning's entry: lists as long as there are contexts, of latents (1|B, n C, T, h, w) in
// the autoencoder's units, of masks (1|B, M, T, h, w), 1 where all is drawn anew, and of numbers.
inline constexpr const char* kVaceFrames = "vace_frames";
inline constexpr const char* kVaceMasks = "vace_mask";
inline constexpr const char* kVaceStrengths = "vace_strength";

// The model's second input.
inline constexpr const char* kVaceStrength = "vace_strength";

// latents (1, n C, T, h, w), in the autoencoder's units, in the model's; C of format.
void to_model_units(Context& ctx, const Tensor& latents, const LatentFormat& format,
                    const Tensor& out);

struct VaceInput {
  Tensor contexts;  // (1 or items, k K, frames, height, width) f32, on the device of the call
  Tensor strength;  // (k) f32, in host memory
};
// settings: vace_channels, K. An entry without contexts has one, of zeros that are all drawn anew.
// Throws where a context has other channels than the model reads, or another size than the point.
VaceInput vace_of(Context& ctx, const Value& entry, const Value& settings,
                  const ConcatPlace& place);

struct VaceShapes {
  Shape contexts, strength;
};
// None where a run throws.
std::optional<VaceShapes> vace_shapes(const blocks::EntryShapes& entry, const Value& settings,
                                      const ConcatPlace& place);

}  // namespace heddle::samplers
