// plugins/upscalers/windows.h - attention within windows of a grid of tokens, also shifted ones,
// and to windows that overlap, with a bias by relative position. Source: Liu et al. 2021, arXiv
// 2103.14030 (Swin); of rectangles: Chen et al. 2022, arXiv 2211.13654 (CAT); of overlaps: Chen et
// al. 2023, arXiv 2205.04437 (HAT). Grids are (B, H, W, C). Blocks are pure and have no instance;
// any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::upscalers {

struct WindowSize {
  std::int64_t height = 1, width = 1;
  std::int64_t count() const { return height * width; }
};

// -> ids (Q, K) i32, the row of a bias table for each token of a query's window and of a key's:
// with a the place of the one, b that of the other, and distance = a - b, or b - a where
// `keys_first`, row * columns + column of distance, plus `start`. Those below 0 count from the end
// of the table, which has `columns` x `columns` rows then.
struct RelativePlaces {
  static constexpr Info info{"windows.places",   1,  "Relative positions in windows",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<std::int64_t> query_height{"query_height", Widget{.number = 8}};
  static constexpr Input<std::int64_t> query_width{"query_width", Widget{.number = 8}};
  static constexpr Input<std::int64_t> key_height{"key_height", Widget{.number = 8}};
  static constexpr Input<std::int64_t> key_width{"key_width", Widget{.number = 8}};
  static constexpr Input<std::int64_t> columns{"columns", Widget{.number = 15}};
  static constexpr Input<std::int64_t> start{"start", Widget{.number = 0}};
  static constexpr Input<bool> keys_first{"keys_first", Widget{.number = 0}};
  static constexpr Output<Tensor> ids{"ids"};
  static constexpr auto ports = heddle::ports(query_height, query_width, key_height, key_width,
                                              columns, start, keys_first, ids);
  static void execute(Context& ctx);
};

// -> masks (3, 1, N, N) f32: what is added to the scores of a shifted window that reaches over the
// lower edge of the grid, over the right one, over both. Tokens of different sides do not see each
// other.
struct ShiftMasks {
  static constexpr Info info{"windows.masks",    1,  "Masks of shifted windows",
                             "blocks/upscalers", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<std::int64_t> height{"height", Widget{.number = 8}};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 8}};
  static constexpr Input<std::int64_t> down{"down", Widget{.number = 4}};
  static constexpr Input<std::int64_t> right{"right", Widget{.number = 4}};
  static constexpr Output<Tensor> masks{"masks"};
  static constexpr auto ports = heddle::ports(height, width, down, right, masks);
  static void execute(Context& ctx);
};

// table (rows, heads), ids (Q, K) -> (1, heads, Q, K) f32.
Tensor position_bias(Context& ctx, const Tensor& table, const Tensor& ids);

struct WindowAttention {
  std::int64_t heads = 1;
  WindowSize window;
  std::int64_t down = 0, right = 0;  // by how much windows are shifted, round the edges
};

// qkv (B, H, W, 3 C) -> out (B, H, W, C), also a slice: attention of the tokens of each window.
// Sides are multiples of the window's. bias (1, heads, N, N); masks of ShiftMasks where windows are
// shifted.
void attend_in_windows(Context& ctx, const Tensor& qkv, const WindowAttention& how,
                       const Tensor& bias, const Tensor& masks, const Tensor& out);

// The same, where each window sees one of `reach` rows and columns around it, zeros beyond the
// edges. bias (1, heads, N, reach reach).
Tensor attend_to_overlaps(Context& ctx, const Tensor& qkv, std::int64_t heads, std::int64_t side,
                          std::int64_t reach, const Tensor& bias);

}  // namespace heddle::upscalers
