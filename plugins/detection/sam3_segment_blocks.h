// plugins/detection/sam3_segment_blocks.h - the block types by which SAM 3 makes one mask of
// points, of a box or of a mask (Kirillov et al. 2023, Segment Anything; Ravi et al. 2024, SAM 2),
// beyond attentions (attention_blocks.h). Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// grid (1, H, W, C), mask (1, 4 H, 4 W, 1), logits -> cells (1, H W, C): the grid plus what a
// picture without a past adds, plus the mask made smaller, or what stands for none.
struct Sam3MaskPrompt {
  static constexpr Info info{"sam3.mask_prompt", 1,  "SAM 3 mask prompt",
                             "blocks/sam3",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight no_past{"no_past"};
  static constexpr Weight no_mask{"no_mask"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight first_norm{"first_norm.weight"};
  static constexpr Weight first_norm_bias{"first_norm.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight second_norm{"second_norm.weight"};
  static constexpr Weight second_norm_bias{"second_norm.bias"};
  static constexpr Weight last{"last.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight last_bias{"last.bias"};
  static constexpr Output<Tensor> out{"cells"};
  static constexpr auto ports = heddle::ports(grid, mask, eps, no_past, no_mask, first, first_bias,
                                              first_norm, first_norm_bias, second, second_bias,
                                              second_norm, second_norm_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// points (N, 2) f32, x and y as parts of the picture, kinds (N) i32, grid (1, H, W, C) -> tokens
// (1, 6 + N, C): those that become a score of the object, one of the masks and four masks, and the
// points; places (1, H W, C), of the cells. Kinds are 0 (not of the object), 1 (of it), 2 and 3 (a
// box's first and last corner) and 4 (no point, wherever it lies). Source: random Fourier features
// (Tancik et al. 2020) by the file's matrix (2, C / 2).
struct Sam3Points {
  static constexpr Info info{"sam3.points", 1,  "SAM 3 points",
                             "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> points{"points"};
  static constexpr Input<Tensor> kinds{"kinds"};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Weight waves{"waves"};
  static constexpr Weight kind_0{"kind.0"};
  static constexpr Weight kind_1{"kind.1"};
  static constexpr Weight kind_2{"kind.2"};
  static constexpr Weight kind_3{"kind.3"};
  static constexpr Weight no_point{"no_point"};
  static constexpr Weight object{"object"};
  static constexpr Weight quality{"quality"};
  static constexpr Weight masks{"masks"};
  static constexpr Output<Tensor> tokens{"tokens"};
  static constexpr Output<Tensor> places{"places"};
  static constexpr auto ports =
      heddle::ports(points, kinds, grid, waves, kind_0, kind_1, kind_2, kind_3, no_point, object,
                    quality, masks, tokens, places);
  static void execute(Context& ctx);
};

// slots (M) f32, 1 of each thing that is followed, 0 of others, grid (1, H, W, C) -> tokens (1, 2 M
// + M T, C): those that become a score of each thing, those of its masks, and T masks of each;
// places (1, H W, C), of the cells. Waves as of points.
struct Sam3Slots {
  static constexpr Info info{"sam3.slots", 1, "SAM 3 slots", "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> slots{"slots"};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Weight waves{"waves"};
  static constexpr Weight object{"object"};
  static constexpr Weight quality{"quality"};
  static constexpr Weight masks{"masks"};
  static constexpr Weight used{"used"};
  static constexpr Weight unused{"unused"};
  static constexpr Output<Tensor> tokens{"tokens"};
  static constexpr Output<Tensor> places{"places"};
  static constexpr auto ports =
      heddle::ports(slots, grid, waves, object, quality, masks, used, unused, tokens, places);
  static void execute(Context& ctx);
};

// cells (1, H W, C), middle (1, 2 H, 2 W, C), fine (1, 4 H, 4 W, C) -> pixels (1, 4 H, 4 W, C / 8).
struct Sam3MaskPixels {
  static constexpr Info info{"sam3.mask_pixels", 1,  "SAM 3 pixels of a mask",
                             "blocks/sam3",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> cells{"cells"};
  static constexpr Input<Tensor> middle{"middle"};
  static constexpr Input<Tensor> fine{"fine"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight first{"first.weight"};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight second{"second.weight"};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight middle_conv{"middle.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight middle_bias{"middle.bias"};
  static constexpr Weight fine_conv{"fine.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight fine_bias{"fine.bias"};
  static constexpr Output<Tensor> out{"pixels"};
  static constexpr auto ports =
      heddle::ports(cells, middle, fine, eps, first, first_bias, norm, norm_bias, second,
                    second_bias, middle_conv, middle_bias, fine_conv, fine_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
