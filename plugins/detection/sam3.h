// plugins/detection/sam3.h - SAM 3 and SAM 3.1, by the names of their published checkpoints, which
// ComfyUI's files keep ("detector.", "tracker.model."), or those that ComfyUI gives them: what
// finds things in a picture that a text names, and what makes one mask of points, a box or a mask.
//
// The graph is told by the config's "part"; without one it is the encoder of pictures and the
// detector in one.
//   "trunk"      picture (1, S, S, 3) f32, 0 to 1 -> hidden (1, G, G, D) f32
//   "detector"   hidden, text (1, N, T), states without padding -> boxes (1, Q, 4): left, top,
//                right, bottom as parts of the picture; scores (1, Q) and presence (1, 1, 1) before
//                a sigmoid; masks (1, Q, 4 G, 4 G), logits
//   "segmenter"  hidden, points (N, 2) f32 as parts of the picture, kinds (N) i32 (Sam3Points),
//                mask (1, 4 G, 4 G, 1) f32 or none -> mask.0 to mask.3 (1, 1, 4 G, 4 G), logits, of
//                which the first is for clear prompts; qualities (1, 1, 4) of these; object (1, 1,
//                1): there is one where it is above 0
// All inputs are loop-invariant. Config: "image_size" (S; without it three times the side that the
// table of places has), "num_attention_heads" (64 numbers each), "window_size" (that side),
// "global_attn_indexes" (every fourth of the layers ends in one), "layer_norm_eps" (1e-5).
// Settings: family "sam3", image_size, grid (G), width (D), text_width (T), queries (Q), and
// part_configs: the configs of the parts that the file has, by their names.
//
// Source of the architecture: Carion et al. 2025 (SAM 3) and ComfyUI, whose differences to
// transformers' Sam3Model are kept: pictures are seen from 0 to 1, places of cells begin at 0, a
// query's place is coded x before y, and a token that stands for no boxes is part of each prompt.
// Stateless, any thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::detection {

struct Sam3 {
  static constexpr Family family{"sam3", "diffusion_model", 1, "SAM 3: things that a text names"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::detection
