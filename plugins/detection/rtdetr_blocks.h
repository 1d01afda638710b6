// plugins/detection/rtdetr_blocks.h - the convolutions of RT-DETR 4 (rtdetr.h). Grids are (1, H, W,
// C) in the compute type. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// x -> f(convolution of the channels from `from` on, normalised by statistics where there are
// some) + residual. Padded by (R - 1) / 2 before and R / 2 behind. depthwise: each channel has a
// filter of its own. The file's filter is (O, C, R, R), or (O, 1, R, R).
struct RtdetrConv {
  enum Kind : std::int64_t { plain = 0, relu = 1, silu = 2 };
  static constexpr Info info{"rtdetr.convolution", 1,  "Convolution of RT-DETR",
                             "blocks/detection",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> residual{"residual", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> from{"from"};
  static constexpr Input<std::int64_t> stride{"stride", Widget{.number = 1}};
  static constexpr Input<std::int64_t> kind{"kind"};
  static constexpr Weight filter{"filter", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight taps{"taps", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight mean{"norm.mean", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight variance{"norm.variance", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, residual, from, stride, kind, filter, taps, bias,
                                              norm, norm_bias, mean, variance, out);
  static void execute(Context& ctx);
};

// The largest of each cell and its neighbours to the right and below, of numbers that are not
// below 0; beyond the edge there are zeros.
struct RtdetrPool {
  static constexpr Info info{"rtdetr.pool",      1,  "Largest neighbours",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, out);
  static void execute(Context& ctx);
};

// Channels of grids one after another; doubles: of the first each cell becomes four.
struct RtdetrJoin {
  static constexpr Info info{"rtdetr.join",      1,  "Grids joined",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<bool> doubles{"doubles"};
  static constexpr Input<Tensor> x0{"x0"};
  static constexpr Input<Tensor> x1{"x1"};
  static constexpr Input<Tensor> x2{"x2", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> x3{"x3", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> x4{"x4", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> x5{"x5", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> x6{"x6", HEDDLE_PORT_OPTIONAL};
  static constexpr const Input<Tensor>* kAll[] = {&x0, &x1, &x2, &x3, &x4, &x5, &x6};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(doubles, x0, x1, x2, x3, x4, x5, x6, out);
  static void execute(Context& ctx);
};

// A grid -> its cells (1, H W, C), row by row, and waves of their places (1, H W, C) f32: sines and
// cosines of the row, then of the column.
struct RtdetrCells {
  static constexpr Info info{"rtdetr.cells",     1,  "Cells of a grid",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Output<Tensor> cells{"cells"};
  static constexpr Output<Tensor> places{"places"};
  static constexpr auto ports = heddle::ports(x, cells, places);
  static void execute(Context& ctx);
};

// Cells -> a grid as large as `like`.
struct RtdetrGrid {
  static constexpr Info info{"rtdetr.grid",      1,  "Grid of cells",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> cells{"cells"};
  static constexpr Input<Tensor> like{"like"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(cells, like, out);
  static void execute(Context& ctx);
};

// A grid with a border of zeros, as wide as a cell.
struct RtdetrBorder {
  static constexpr Info info{"rtdetr.border",    1,  "Grid with a border",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
