// plugins/denoisers/zimage.h - the families of Z-Image and Lumina 2: which checkpoints are theirs,
// and the graph of blocks they make.
//
// Inputs   x         (B, C, H, W)      per step        the latent, scaled; any float
//          timestep  (N)               precomputed     noise level in [0, 1], f32
//          context   (1|B, T, Dt)      loop-invariant  the encoder's states, unpadded
// Output   out       (B, C, H, W)      velocity (noise - image), in the latent's element type
//
// Blocks   embed.vector, embed.rope, embed.text, embed.image, refine.text.<i>,
//          refine.image.<i>.modulation, refine.image.<i>.block, join, layer.<i>.modulation,
//          layer.<i>.block, final.modulation, final.block
//
// Every dimension is read off the tensors; a config may give axes_dims, rope_theta, t_scale and
// norm_eps, as config.json does. Settings: see build(). Stateless, any thread.
#pragma once

#include "zimage_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct ZImage {
  static constexpr Family family{"z-image", "diffusion_model", 1,
                                 "Z-Image: single-stream transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct Lumina2 {
  static constexpr Family family{"lumina2", "diffusion_model", 1,
                                 "Lumina 2: single-stream transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
