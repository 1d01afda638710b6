// plugins/denoisers/sd3.h - the family of Stable Diffusion 3 medium and 3.5 medium and large: which
// checkpoints are theirs, and the graph of blocks they make.
//
// Inputs   x         (B, 16, H, W)     per step        the latent, scaled; any float
//          timestep  (N)               precomputed     noise level in [0, 1000], f32
//          context   (1|B, T, 4096)    loop-invariant  states of CLIP-L beside CLIP-G, T5's behind
//          y         (1|B, 2048)       loop-invariant  pooled texts of CLIP-L and CLIP-G
// Output   out       (B, 16, H, W)     velocity (noise - image), in the latent's element type
//
// Blocks   embed.vector, embed.text, embed.image, double.<i>.modulation.{img,txt},
// double.<i>.block,
//          final.modulation, final.block
//
// A latent has at most as many tokens along a side as the file's table of positions (192, in 3.5
// medium 384). Every dimension is read off the tensors, but the size of a head where there are no
// norms of them (SD3): 64, or the config's attention_head_dim. Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

#include "sd3_blocks.h"

namespace heddle::denoisers {

// A ControlNet of Stable Diffusion 3 (InstantX) or 3.5 large (blur, canny, depth), in the names of
// diffusers: inputs x, timestep, y and, but for those of 3.5, context as above; "hint" (1|B, C', H,
// W), the latent of the picture that says what is to be drawn, with a mask behind it in those for
// inpainting. Those of 3.5 read "tokens" (B, S, D), what the denoiser makes of the latent before
// its first block ("tokens_model" of its settings), and of x the shape. Outputs and settings:
// control.h.
struct Sd3Control {
  static constexpr Family family{"sd3-control", "control_net", 1,
                                 "ControlNet of Stable Diffusion 3 and 3.5"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct Sd3 {
  static constexpr Family family{"sd3", "diffusion_model", 1,
                                 "Stable Diffusion 3 and 3.5, text to image"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
