// plugins/denoisers/seedvr.h - the family of SeedVR2, 3B and 7B: which checkpoints are its own, and
// the graph of blocks they make.
//
// Inputs   x         (B, C, F, H, W)   per step        the latent of F frames, scaled; any float
//          timestep  (N)               precomputed     noise level in [0, 1000], f32
//          context   (1|B, T, W)       loop-invariant  one of the texts that the file brings
//          concat    (1|B, C + 1, F, H, W) loop-invariant  the latent that is made sharper, scaled,
//                                                      and ones
// Output   out       (B, C, F, H, W)   velocity (noise - video), in the latent's element type
//
// Blocks   embed.vector, embed.rope, embed.shifted_rope, embed.text, embed.video,
//          layer.<i>.modulation, layer.<i>.text_modulation, layer.<i>.block, final.modulation,
//          final.block
//
// With `texts` in the configuration the graph gives the file's two texts instead, of x's shape
// alone: outputs positive and negative (1, T, W) f32.
//
// 3B: text and video have weights of their own in the first layers and share them in the others,
// the last layer only shows the text, the rotary table is that of language models, and a norm comes
// before the last projection. 7B: none of these, but for files that share layers. Every dimension
// is read off the tensors. Stateless, any thread.
#pragma once

#include "seedvr_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Seedvr {
  static constexpr Family family{"seedvr2", "diffusion_model", 1,
                                 "SeedVR2, 3B and 7B: video transformer that makes videos sharper"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
