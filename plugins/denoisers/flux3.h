// plugins/denoisers/flux3.h - the FLUX 3 family: which checkpoints are FLUX 3 (klein, whose steps
// are distilled, and klein base), and the graph of blocks they make.
//
// Inputs   x         (B, C, H, W)      per step        the latent, scaled; any float type
//          timestep  (N)               precomputed     noise level in [0, 1], f32
//          target_timestep (N)         precomputed     only in distilled models: the level that the
//                                                      step goes to, f32
//          context   (1|B, T, Dt)      loop-invariant  states of eight layers of the text encoder,
//                                                      side by side, with the padding that they
//                                                      were made with
//          references  (1|B, R, C)     loop-invariant  optional: tokens of pictures that the model
//                                                      is shown, at
//          reference_positions (R, 3)  loop-invariant  optional: index, row, column; the indices
//                                                      are -1, -2 and so on
// Output   out       (B, C, H, W)      velocity (noise - image), in the latent's element type
//
// What depends on no level, the text's and the pictures' own layers of a model that is not
// distilled, is made once in a run; of a distilled one these layers run in each step.
//
// Blocks   embed.vector, embed.still, embed.rope, embed.text, embed.image, embed.reference,
//          modulation.early.<kind>, modulation.single.<kind>, text.<i>.block, image.<i>.block,
//          reference.<i>.block, join, single.<i>.block, final.modulation, final.block; a kind is
//          image, text or reference
//
// Every dimension is read off the tensors; a config may give axes_dims_rope and rope_theta, as
// config.json does. Settings: see build(). Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

#include "flux3_blocks.h"

namespace heddle::denoisers {

struct Flux3 {
  static constexpr Family family{"flux3", "diffusion_model", 1,
                                 "FLUX 3: transformer of three kinds of tokens"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
