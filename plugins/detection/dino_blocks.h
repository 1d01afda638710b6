// plugins/detection/dino_blocks.h - the block types of DINOv2, a vision transformer (Oquab et al.
// 2023), and what a grid of any size needs of its table of places. Hidden states are (B, 1 + S, D)
// f32: the class token, then cells row after row. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// Numbers of a line as weighted sums of others: ids (T, N) i32, of the line that is read, and
// shares (T, N) f32 of these T. grid (B, H, W, C), any floats -> (B, rows, columns, C) f32.
struct LineTaps {
  Tensor ids, shares;
};
Tensor resampled(Context& ctx, const Tensor& grid, const LineTaps& rows, const LineTaps& columns);

// picture (B, R p, C p, 3), 0 to 1 -> hidden (B, 1 + R C, D): squares of p pixels, made even by
// mean and deviation (1, 3, 1, 1), behind the class token, all with their places. The table
// (1, 1 + n n, D) is resampled to R x C by the taps of rows and columns.
struct DinoEmbed {
  static constexpr Info info{"dino.embed",  1,  "DINOv2 patches",
                             "blocks/dino", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture"};
  static constexpr Input<Tensor> row_ids{"row_ids"};
  static constexpr Input<Tensor> row_shares{"row_shares"};
  static constexpr Input<Tensor> column_ids{"column_ids"};
  static constexpr Input<Tensor> column_shares{"column_shares"};
  static constexpr Weight mean{"mean"};
  static constexpr Weight deviation{"deviation"};
  static constexpr Weight patches{"patches.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight patches_bias{"patches.bias"};
  static constexpr Weight places{"places"};
  static constexpr Weight class_token{"class_token"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(picture, row_ids, row_shares, column_ids, column_shares, mean, deviation,
                    patches, patches_bias, places, class_token, out);
  static void execute(Context& ctx);
};

// hidden -> the same. `gated`: the first matrix makes gates, then values, for SwiGLU; else GELU is
// between the matrices. What an attention and an MLP add is scaled number by number.
struct DinoLayer {
  static constexpr Info info{"dino.layer", 1, "DINOv2 layer", "blocks/dino", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 16}};
  static constexpr Input<bool> gated{"gated"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight scale1{"scale1"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Weight scale2{"scale2"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, heads, gated, eps, norm1, norm1_bias, qkv, qkv_bias, proj, proj_bias,
                    scale1, norm2, norm2_bias, up, up_bias, down, down_bias, scale2, out);
  static void execute(Context& ctx);
};

// hidden (B, 1 + S, D), sum (B, R, C, N) or none -> grid (B, R, C, N): the cells behind the last
// norm, through a 1x1 convolution, plus the sum. R and C are those of the taps.
struct DinoProject {
  static constexpr Info info{"dino.project", 1,  "DINOv2 cells of a layer",
                             "blocks/dino",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> sum{"sum", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> row_ids{"row_ids", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> column_ids{"column_ids", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight point{"point.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight point_bias{"point.bias"};
  static constexpr Output<Tensor> out{"grid"};
  static constexpr auto ports =
      heddle::ports(hidden, sum, row_ids, column_ids, eps, norm, norm_bias, point, point_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
