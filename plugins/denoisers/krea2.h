// plugins/denoisers/krea2.h - the family of Krea 2: which checkpoints are its own, and the graph of
// blocks they make.
//
// Inputs   x         (B, C, H, W)       per step        the latent, scaled; any float
//          timestep  (N)                precomputed     noise level in [0, 1], f32
//          context   (1|B, T, n Dt)     loop-invariant  the states of n layers of the encoder, side
//                                                       by side, unpadded
// Output   out       (B, C, H, W)       velocity (noise - image), in the latent's element type
//
// Blocks   embed.vector, embed.modulation, embed.rope, embed.image, text.layers.<i>, text.mix,
//          text.refine.<i>, embed.text, join, layer.<i>.modulation, layer.<i>.block,
//          final.modulation, final.block
//
// Every dimension is read off the tensors; a config may give axes_dims_rope, rope_theta and
// norm_eps, as config.json does. Settings: see build(). Stateless, any thread.
#pragma once

#include "krea2_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Krea2 {
  static constexpr Family family{"krea2", "diffusion_model", 1,
                                 "Krea 2: single-stream transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
