// plugins/detection/rtdetr.h - RT-DETR 4, which finds objects of 80 classes in pictures, by the
// names of ComfyUI's file: HGNetV2, an encoder that mixes three grids, and D-FINE's decoder.
//
//   picture (1, H, W, 3) f32, 0 to 1, H and W multiples of 32; anchors (1, S, 4) f32 and valid (1,
//   S, 1) f32 (rtdetr_anchors()), S being the cells of grids of H / 8, H / 16 and H / 32 rows
//   -> logits (1, Q, K) f32 of Q boxes and K classes, before a sigmoid; boxes (1, Q, 4) f32:
//   middle,
//      width and height as parts of the picture
// All inputs are loop-invariant. Config: "num_queries" (Q, 300), "num_attention_heads" (8). S has
// to be above Q. Settings: family "rt-detr-v4", queries, classes (K).
//
// Source of the architecture: Peng et al. 2024 (D-FINE), Lv et al. 2023 (RT-DETR), RT-DETRv4, and
// ComfyUI, whose file has its reparametrised convolutions already joined. Of the layers' heads
// those of the last layer are read alone, and of the file's tensors neither `valid_mask`,
// `num_points_scale`, `up` nor numbers of batches: what they hold follows from the architecture.
// Stateless, any thread.
#pragma once

#include <vector>

#include <heddle/model.hpp>

namespace heddle::detection {

struct Rtdetr {
  static constexpr Family family{"rt-detr-v4", "diffusion_model", 1,
                                 "RT-DETR 4: objects of 80 classes in pictures"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

// Boxes around the middles of cells, 0.05 of the picture wide in the finest of the three grids and
// twice as wide in each next, before a sigmoid; 1 for those that lie between 0.01 and 0.99 of the
// picture, 0 for others, whose numbers are large. Source: D-FINE.
struct RtdetrAnchors {
  std::vector<float> boxes, valid;  // (S, 4), (S)
};
RtdetrAnchors rtdetr_anchors(std::int64_t height, std::int64_t width);

}  // namespace heddle::detection
