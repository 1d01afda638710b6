// plugins/detection/sam3_memory_blocks.h - the block types by which SAM 3.1 keeps what it saw of
// things in a video, and sees the next frame with that (Ravi et al. 2024, SAM 2; Carion et al.
// 2025, SAM 3; of 3.1, which follows M things at once, ComfyUI). A frame's grid is (1, H, W, C), S
// = H W its cells; F frames and P pointers are remembered. Blocks are pure and have no instance;
// any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// masks (1, H, W, M), and trusted (M), which becomes M channels more -> (1, H / 2, W / 2, O): a
// convolution of 3x3 with strides of 2, normalised over the channels, through a GELU.
struct Sam3MaskStage {
  static constexpr Info info{"sam3.mask_stage", 1,  "SAM 3 masks made smaller",
                             "blocks/sam3",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> masks{"masks"};
  static constexpr Input<Tensor> trusted{"trusted", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"masks"};
  static constexpr auto ports =
      heddle::ports(masks, trusted, eps, conv, conv_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// grid, masks (1, H, W, O) -> grid: both through a convolution of 1x1, added.
struct Sam3MaskOnGrid {
  static constexpr Info info{"sam3.mask_on_grid", 1,  "SAM 3 masks on a grid",
                             "blocks/sam3",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Input<Tensor> masks{"masks"};
  static constexpr Weight seen{"seen.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight seen_bias{"seen.bias"};
  static constexpr Weight last{"last.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight last_bias{"last.bias"};
  static constexpr Output<Tensor> out{"grid"};
  static constexpr auto ports = heddle::ports(grid, masks, seen, seen_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// grid -> grid + scale * feed forward with a GELU of the normalised depthwise convolution. Source:
// Liu et al. 2022, ConvNeXt.
struct Sam3Fuse {
  static constexpr Info info{"sam3.fuse", 1, "SAM 3 fuser", "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight filter{"filter"};
  static constexpr Weight filter_bias{"filter.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Weight scale{"scale"};
  static constexpr Output<Tensor> out{"grid"};
  static constexpr auto ports = heddle::ports(grid, eps, filter, filter_bias, norm, norm_bias, up,
                                              up_bias, down, down_bias, scale, out);
  static void execute(Context& ctx);
};

// grid, absent (1, M): 1 of each thing that is not seen, 0 of others -> memory (1, S, C): what
// stands for such things added.
struct Sam3Memory {
  static constexpr Info info{"sam3.memory", 1,  "SAM 3 memory",
                             "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Input<Tensor> absent{"absent"};
  static constexpr Weight table{"absent.table"};
  static constexpr Output<Tensor> out{"memory"};
  static constexpr auto ports = heddle::ports(grid, absent, table, out);
  static void execute(Context& ctx);
};

// cells (1, S, C), places (1, S, C), frames (F) i32, rows of the table of times, ages (P) f32, of
// pointers, from 0 to 1 or more -> start (1, S, C): cells with a tenth of their places;
// memory_places (1, F S + P each, C): places of all frames, each with its time, then of pointers.
struct Sam3MemoryPlaces {
  static constexpr Info info{"sam3.memory_places", 1,  "SAM 3 places of memories",
                             "blocks/sam3",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> cells{"cells"};
  static constexpr Input<Tensor> places{"places"};
  static constexpr Input<Tensor> frames{"frames"};
  static constexpr Input<Tensor> ages{"ages"};
  static constexpr Input<std::int64_t> each{"each", Widget{.number = 1}};
  static constexpr Weight times{"times"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> start{"start"};
  static constexpr Output<Tensor> memory_places{"memory_places"};
  static constexpr auto ports = heddle::ports(cells, places, frames, ages, each, times, proj,
                                              proj_bias, start, memory_places);
  static void execute(Context& ctx);
};

// x (1, S, C) -> x + attention of norm(x), whose queries and keys turn with columns and rows.
struct Sam3TurnedAttend {
  static constexpr Info info{"sam3.turned_attend", 1,  "SAM 3 attention to itself",
                             "blocks/sam3",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> cosines{"cos"};
  static constexpr Input<Tensor> sines{"sin"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_bias{"q.bias"};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k_bias{"k.bias"};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, cosines, sines, heads, eps, norm, norm_bias, q,
                                              q_bias, k, k_bias, v, v_bias, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// x (1, S, C), cells (1, S, C), of the frame, memory (1, F S + N, C), of which the last N are
// pointers, past (1, F S, C): the cells of the frames of the memory, memory_places -> x + attention
// to memory. Queries are made of norm(x) and cells, keys of memory and past, plus their places;
// they turn, but for pointers.
struct Sam3MemoryAttend {
  static constexpr Info info{"sam3.memory_attend", 1,  "SAM 3 attention to memories",
                             "blocks/sam3",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> cells{"cells"};
  static constexpr Input<Tensor> memory{"memory"};
  static constexpr Input<Tensor> past{"past"};
  static constexpr Input<Tensor> memory_places{"memory_places"};
  static constexpr Input<Tensor> cosines{"cos"};
  static constexpr Input<Tensor> sines{"sin"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_bias{"q.bias"};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k_bias{"k.bias"};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias"};
  static constexpr Weight image_q{"image_q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight image_q_bias{"image_q.bias"};
  static constexpr Weight image_k{"image_k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight image_k_bias{"image_k.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(
      x, cells, memory, past, memory_places, cosines, sines, heads, eps, norm, norm_bias, q, q_bias,
      k, k_bias, v, v_bias, image_q, image_q_bias, image_k, image_k_bias, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// x (1, S, C) -> the same, normalised.
struct Sam3Normed {
  static constexpr Info info{"sam3.normed", 1, "SAM 3 norm", "blocks/sam3", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, eps, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// x (1, N, C) -> a matrix's product (1, N, C) f32.
struct Sam3Product {
  static constexpr Info info{"sam3.product", 1,  "SAM 3 product",
                             "blocks/sam3",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight matrix{"matrix.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight added{"matrix.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, matrix, added, out);
  static void execute(Context& ctx);
};

// mask (1, H, W, 1), 0 or 1 -> logits (1, H / 4, W / 4, 1), as a mask prompt has them.
struct Sam3MaskLogits {
  static constexpr Info info{"sam3.mask_logits", 1,  "SAM 3 logits of a mask",
                             "blocks/sam3",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> mask{"mask"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"logits"};
  static constexpr auto ports = heddle::ports(mask, conv, conv_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
