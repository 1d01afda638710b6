// plugins/detection/moge_stack_blocks.h - the block types of MoGe's convolutions: grids
// (B, H, W, C) f32 that grow twice at a time. Convolutions of 3x3 repeat the edge. A grid's view is
// where its cells lie in the picture: u and v from -span to span, the corners of the picture being
// at the span; a span (2) f32 has width and height over the picture's diagonal. Blocks are pure and
// have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// x (B, H, W, C), channels (N, C), of the span -> (B, H, W, C + 2): with the view behind.
Tensor with_view(Context& ctx, const Tensor& x, const Tensor& span);

// x (B, H, W, N) or none, grid (B, H, W, C) or none, one of them at least -> x + a 1x1 convolution
// of the grid with its view: weight (N, C + 2 or 2, 1, 1).
struct MogeView {
  static constexpr Info info{"moge.view", 1, "MoGe view", "blocks/moge", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> grid{"grid", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> span{"span"};
  static constexpr Weight point{"point.weight"};
  static constexpr Weight point_bias{"point.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, grid, span, point, point_bias, out);
  static void execute(Context& ctx);
};

// x or none, grid (B, H, W, C) -> x + a 1x1 convolution of the grid.
struct MogePoint {
  static constexpr Info info{"moge.point",  1,  "MoGe 1x1 convolution",
                             "blocks/moge", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> grid{"grid"};
  static constexpr Weight point{"point.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight point_bias{"point.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, grid, point, point_bias, out);
  static void execute(Context& ctx);
};

// x -> x + two convolutions of 3x3, each behind a ReLU, and behind a group norm where there is one:
// the first of one group, the second of groups of 32 channels.
struct MogeResidual {
  static constexpr Info info{"moge.residual", 1,  "MoGe residual",
                             "blocks/moge",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm1{"norm1.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm1_bias{"norm1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight first{"first.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight norm2{"norm2.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm2_bias{"norm2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight second{"second.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, eps, norm1, norm1_bias, first, first_bias, norm2,
                                              norm2_bias, second, second_bias, out);
  static void execute(Context& ctx);
};

// x (B, H, W, C) -> (B, 2 H, 2 W, N): doubled by a transposed convolution, of x with its view where
// there is a span, or linearly where there is no such filter; then a convolution of 3x3.
struct MogeGrow {
  static constexpr Info info{"moge.grow", 1, "MoGe growth", "blocks/moge", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> span{"span", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight up{"up.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight up_bias{"up.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, span, up, up_bias, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// x (B, h, w, C) -> (B, H, W, C + 2): of another size, by taps (dino_blocks.h), with its view.
struct MogeResize {
  static constexpr Info info{"moge.resize", 1, "MoGe resize", "blocks/moge", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> span{"span"};
  static constexpr Input<Tensor> row_ids{"row_ids"};
  static constexpr Input<Tensor> row_shares{"row_shares"};
  static constexpr Input<Tensor> column_ids{"column_ids"};
  static constexpr Input<Tensor> column_shares{"column_shares"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports =
      heddle::ports(x, span, row_ids, row_shares, column_ids, column_shares, out);
  static void execute(Context& ctx);
};

// x -> a convolution of 3x3, a ReLU, one of 1x1.
struct MogeHead {
  static constexpr Info info{"moge.head", 1, "MoGe head", "blocks/moge", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight point{"point.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight point_bias{"point.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, conv, conv_bias, point, point_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
