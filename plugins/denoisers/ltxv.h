// plugins/denoisers/ltxv.h - the family of LTX-Video 0.9: which checkpoints are its own, and the
// graph of blocks they make.
//
// Inputs   x           (B, C, F, H, W)  per step        the latent of F frames; any float
//          timestep    (N)              precomputed     noise level in [0, 1], f32
//          context     (1|B, T, W)      loop-invariant  the text encoder's states, without padding:
//                                                       a mask would hide it
//          frame_time  (1)              loop-invariant  seconds between two pictures, f32
//          frame_noise (F')             loop-invariant  optional: what each of F' equal parts of
//                                                       the tokens has of the level, such as each
//                                                       frame; absent: all of it
//          guide_frames (K, 2 or 3), token_rows (T), token_places (F H W), guide_weights (G)
//                                       loop-invariant  optional: of guides (LTXVAddGuide), as
//                                                       put_guides(), LtxvLatentIn, LtxvFinal and
//                                                       GuidedAttention take them
// Output   out         (B, C, F, H, W)  velocity (noise - video), in the latent's element type
//
// Blocks   embed.vector, embed.modulation, embed.rope, embed.text, embed.latent,
//          layer.<i>.modulation, layer.<i>.text, layer.<i>.block, final.modulation, final.block
//
// Sizes are read off the tensors. The rest stands in a config, or in that of the file's metadata
// ("config", its record "transformer"), as ComfyUI reads it: num_attention_heads (32),
// causal_temporal_positioning (false; true from 0.9.5 on), norm_eps, positional_embedding_theta,
// positional_embedding_max_pos. Settings: see build(). Stateless, any thread.
#pragma once

#include "ltxv_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

struct Ltxv {
  static constexpr Family family{"ltxv", "diffusion_model", 1,
                                 "LTX-Video 0.9: video transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
