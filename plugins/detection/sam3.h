// plugins/detection/sam3.h - SAM 3 and SAM 3.1, by the names of their published checkpoints, which
// ComfyUI's files keep ("detector.", "tracker.model."), or those that ComfyUI gives them: what
// finds things in a picture that a text names, what makes one mask of points, a box or a mask, and
// what follows things in a video.
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
// Of SAM 3.1, which follows M things in a video at once (S = G G cells, F frames and P pointers
// remembered, T masks of each thing):
//   "tracker"    hidden; memory (1, F S + P M, C), of frames, then pointers; past (1, F S, C), the
//                cells of the frames; frames (F) i32, rows of the table of times; ages (P) f32, of
//                pointers; slots (M) f32, 1 of a thing, 0 of none -> mask.0 to mask.T-1 (1, M, 4 G,
//                4 G), logits; qualities (1, M, T); objects (1, M, 1); pointers, and what is there
//                for those where objects is not above 0, absent (1, M, C)
//   "memory"     hidden; masks (1, 16 G, 16 G, M), -1 to 1; trusted (M) f32, 1 of masks that were
//                given; absent (1, M) f32, 1 of things that are not seen -> memory, cells (1, S, C)
//   "pointer"    what the segmenter reads -> object; pointers, absent (1, 1, C)
//   "mask_logits"  mask (1, S, S, 1) f32, 0 or 1 -> logits (1, S / 4, S / 4, 1)
// All inputs are loop-invariant. Config: "image_size" (S; without it three times the side that the
// table of places has), "num_attention_heads" (64 numbers each), "window_size" (that side),
// "global_attn_indexes" (every fourth of the layers ends in one), "layer_norm_eps" (1e-5).
// Settings: family "sam3", image_size, grid (G), width (D), text_width (T), queries (Q), and
// part_configs: the configs of the parts that the file has, by their names. With a tracker: slots
// (M), slot_masks (T), memories (rows of the table of times), channels (C).
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
