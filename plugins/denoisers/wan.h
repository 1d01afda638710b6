// plugins/denoisers/wan.h - the family of Wan 2.1 and 2.2: which checkpoints are theirs, and the
// graph of blocks they make.
//
// Inputs   x         (B, C, F, H, W)    per step        the latent of F frames, scaled; any float
//          timestep  (N)                precomputed     noise level in [0, 1000], f32
//          context   (1|B, T, W)        loop-invariant  the text encoder's states, padded as it
//          says concat    (1|B, C', F, H, W) loop-invariant  only where more channels go in than
//          come out vision    (1|B, V, U)        loop-invariant  optional, of models that are shown
//          pictures:
//                                                       the vision model's states
//          frame_noise (F)              loop-invariant  only of the 5B, optional: what each frame
//                                                       has of the level; absent: all of it
//          vace      (1|B, n K, F, H, W) loop-invariant  only of VACE: of n contexts, each of K
//                                                       channels, latents and masks; in the
//                                                       model's units
//          vace_strength (n)            loop-invariant  only of VACE: how much each counts, f32
// Output   out       (B, C, F, H, W)    velocity (noise - video), in the latent's element type
//
// Blocks   embed.vector, embed.modulation, embed.rope, embed.text, embed.vision, embed.latent,
//          layer.<i>.modulation, layer.<i>.text, layer.<i>.vision, layer.<i>.block,
//          final.modulation, final.block; of VACE embed.vace, embed.vace_start,
//          vace.<k>.modulation, vace.<k>.text, vace.<k>.block, vace.<k>.add
//
// Every dimension is read off the tensors; heads have 128 numbers, as in all that were published,
// unless a config says attention_head_dim. Settings: see build(). Stateless, any thread.
#pragma once

#include "wan_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Wan {
  static constexpr Family family{"wan", "diffusion_model", 1,
                                 "Wan 2.1 and 2.2: video transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
