// plugins/denoisers/qwen.h - the Qwen-Image family: which checkpoints are Qwen-Image, and the graph
// of blocks they make.
//
// Inputs   x         (B, C, H, W)      per step        the latent, scaled; any float; one frame
//          timestep  (N)               precomputed     noise level in [0, 1], f32
//          context   (1|B, T, Dt)      loop-invariant  the encoder's last hidden state, unpadded
//          concat    (1|B, C', H, W)   loop-invariant  only where more channels go in than come out
//          references (1|B, R, 4 C)    loop-invariant  optional: tokens of pictures that the model
//                                                      is shown; only without a concat, as the rest
//          reference_positions (R, 3)  loop-invariant  with them: index, row, column
//          text_start (1)              loop-invariant  with them: where the text begins
//          reference_timestep (1)      loop-invariant  optional: their own noise level
//          control.double, control.first (1|B, S, K D)  per step, optional: residuals of a
//                                                      ControlNet (control.h)
// Output   out       (B, C, H, W)      velocity (noise - image), in the latent's element type
//
// Qwen-Image-Layered draws F pictures at once, the whole and its layers behind it: x and out are
// (B, C, F, H, W), what it is shown lies before the first of them, and there are no
// controls.
// Its file is told by the embedding time_text_embed.addition_t_embedding.
//
// Blocks   embed.vector, embed.rope, embed.text_norm, embed.text, embed.image,
//          double.<i>.modulation, double.<i>.block, final.modulation, final.block
//
// With "expose_blocks": true in the config, each block's result is an output too ("double.<i>.img",
// "double.<i>.txt"), for those who look inside.
//
// Every dimension is read off the tensors; the config gives the rotary axes and the depth when
// there is one. Settings: see build(). Stateless, any thread.
#pragma once

#include "qwen_blocks.h"

#include <heddle/model.hpp>

namespace heddle::denoisers {

// A ControlNet of Qwen-Image, of InstantX: inputs x, timestep, context as above, and "hint" (1|B,
// C', H, W), the latent of the picture that says what is to be drawn, for inpainting with its mask
// behind it. Outputs and settings: control.h.
struct QwenControl {
  static constexpr Family family{"qwen-image-control", "control_net", 1,
                                 "ControlNet of Qwen-Image"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct Qwen {
  static constexpr Family family{"qwen-image", "diffusion_model", 1,
                                 "Qwen-Image: dual-stream transformer with rectified flow"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
