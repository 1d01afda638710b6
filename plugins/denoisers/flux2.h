// plugins/denoisers/flux2.h - the FLUX.2 family: which checkpoints are FLUX.2 (klein 4B and 9B,
// dev), and the graph of blocks they make. Its streams are those of FLUX.1 (dual_stream.h) without
// biases, with gated MLPs, tokens of one latent cell, and one modulation for all blocks of a kind.
//
// Inputs   x         (B, C, H, W)      per step        the latent, scaled; any float type
//          timestep  (N)               precomputed     noise level in [0, 1], f32
//          context   (1|B, T, Dt)      loop-invariant  states of three layers of the text encoder;
//                                                      fewer tokens than 512 are completed by zeros
//                                                      before them
//          guidance  (1|B)             loop-invariant  f32, optional, 3.5 when absent; only in
//                                                      models distilled with guidance (dev)
//          unguided  (1)               loop-invariant  optional, in these: without any guidance
//          references (1|B, R, C)      loop-invariant  optional: tokens of pictures that the model
//                                                      is shown, at
//          reference_positions (R, 3)  loop-invariant  optional: index, row, column
//          reference_timestep (1)      loop-invariant  optional: their own noise level
//          positions (2, 3)            loop-invariant  optional: where image tokens lie, time, row
//                                                      and column, times the first row plus the
//                                                      second
//          nag       (5)               loop-invariant  optional: attention_guidance.h
// Output   out       (B, C, H, W)      velocity (noise - image), in the latent's element type
//
// Blocks   embed.vector, embed.rope, embed.text, embed.image, modulation.double,
//          modulation.single, double.<i>.block, join, single.<i>.block, final.modulation,
//          final.block
//
// With "expose_blocks": true in the config, each block's result is an output too ("double.<i>.img",
// "double.<i>.txt", "single.<i>"); "least_text_tokens" is there instead of 512. Every dimension is
// read off the tensors; the config gives the rotary axes, their base and the depth when there is
// one.
// With "keeps_references": true each double and single block has an output "kept.double.<i>" and so
// on, keys and values of the references' tokens (B, R, 2 D), and an optional input of that name
// (loop-invariant), which takes the place of the references. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

#include "flux2_blocks.h"

namespace heddle::denoisers {

struct Flux2 {
  static constexpr Family family{
      "flux2", "diffusion_model", 1,
      "FLUX.2: double- and single-stream transformer with shared modulation"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
