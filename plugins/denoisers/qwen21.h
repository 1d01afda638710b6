// plugins/denoisers/qwen21.h - the family of Qwen-Image 2.1: which checkpoints are its own, and the
// graph of blocks they make.
//
// Inputs   x         (B, C, H, W)      per step        the latent, scaled; any float
//          timestep  (N)               precomputed     noise level in [0, 1], f32
//          context   (1|B, T, Dt)      loop-invariant  the encoder's states, unpadded
//          reference.<i> (1|B, C, h, w)    optional, up to ten: pictures that it is shown, scaled
//          slot.<i>      (n + 1) i32       with it, read by its shape alone: before token n of the
//                                          context (qwen21_places.h)
// Output   out       (B, C, H, W)      velocity (noise - image), in the latent's element type
//
// Blocks   embed.vector, embed.modulation, embed.rope, embed.text, embed.image, join, layer.<i>,
//          final
//
// Every dimension is read off the tensors; a config may give axes_dims_rope and eps, as config.json
// does. Settings: see build(). Stateless, any thread.
#pragma once

#include "qwen21_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Qwen21 {
  static constexpr Family family{"qwen-image-2.1", "diffusion_model", 1,
                                 "Qwen-Image 2.1: single-stream transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
