// plugins/denoisers/flux.h - the FLUX.1 family: which checkpoints are FLUX, and the graph of blocks
// they make.
//
// Inputs   x         (B, C, H, W)      per step        the latent, scaled; any float type
//          timestep  (N)               precomputed     noise level in [0, 1], f32
//          context   (1|B, T, Dt)      loop-invariant  T5's last hidden state
//          y         (1|B, P)          loop-invariant  CLIP's pooled state
//          guidance  (1|B)             loop-invariant  f32, optional, 3.5 when absent; only in
//                                                      models distilled with guidance
//          unguided  (1)               loop-invariant  optional, in these: without any guidance
//          references (1|B, R, 4 C)    loop-invariant  optional: tokens of pictures that the model
//                                                      is shown (Kontext), at
//          reference_positions (R, 3)  loop-invariant  optional: index, row, column; only where no
//                                                      concat is read
//          concat    (1|B, C', H, W)   loop-invariant  only in models with more input than output
//                                                      channels (fill, canny, depth)
//          control.double, control.single (1|B, S, K D)  per step, optional: residuals of a
//                                                      ControlNet (control.h)
// Output   out       (B, C, H, W)      velocity (noise - image), in the latent's element type
//          positions (2, 3)            loop-invariant  optional: where image tokens lie, time, row
//                                      and column, times the first row plus the second
//
// Blocks   embed.vector, embed.rope, embed.text, embed.image,
//          double.<i>.modulation, double.<i>.block, join,
//          single.<i>.modulation, single.<i>.block, final.modulation, final.block
//
// With "expose_blocks": true in the config, each block's result is an output too ("double.<i>.img",
// "double.<i>.txt", "single.<i>"), for those who look inside.
//
// Every dimension is read off the tensors; the config gives the rotary axes and the depth when
// there is one. Settings: see build(). Stateless, any thread.
#pragma once

#include "flux_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

// A ControlNet of FLUX.1, of InstantX and Shakker Labs, in the names of diffusers: inputs x,
// timestep, context, y and guidance as above, "hint" (1|B, C, H, W), the latent of the picture that
// says what is to be drawn, or in those of XLabs, in the original names, its pixels (1|B, 3, 8 H, 8
// W), and where it knows several kinds of hints "mode" (n) i32, optional.
// Outputs and settings: control.h.
struct FluxControl {
  static constexpr Family family{"flux-control", "control_net", 1, "ControlNet of FLUX.1"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct Flux {
  static constexpr Family family{
      "flux", "diffusion_model", 1,
      "FLUX.1: double- and single-stream transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
