// plugins/upscalers/upscaler_blocks.h - what blocks of several upscalers do: pixels put into
// channels and back, leaky activations, mirrored edges, colours around their mean. Inside, pictures
// are (B, H, W, C). Any thread.
#pragma once

#include <heddle/ops.hpp>

namespace heddle::upscalers {

inline constexpr heddle_conv2d_attrs kSame{{1, 1}, {1, 1, 1, 1}};   // 3x3 that keeps the size
inline constexpr heddle_conv2d_attrs kPoint{{1, 1}, {0, 0, 0, 0}};  // 1x1
inline constexpr double kNormEps = 1e-5;                            // PyTorch's, of norms

// In place: x where it is above 0, else slope x.
inline void leak(Context& ctx, const Tensor& x, double slope) {
  ops::leaky_relu_into(ctx, x, {}, slope, x);
}

// conv2d of 3x3 with a bias, then leaky.
Tensor leaky_conv(Context& ctx, const Tensor& x, const Tensor& filter, const Tensor& bias,
                  double slope);

// PyTorch's pixel_shuffle: (B, H, W, C f f) -> (B, f H, f W, C); channel c f f + f i + j becomes
// row i and column j of channel c.
Tensor shuffled(Context& ctx, const Tensor& x, std::int64_t factor);
// The other way round: (B, f H, f W, C) -> (B, H, W, C f f).
Tensor unshuffled(Context& ctx, const Tensor& x, std::int64_t factor);

// Contiguous pixels (B, rows, columns, C): x, and below and to the right of it a mirror of it,
// which begins with the last row but one; where the mirror ends, its last row. A node or a block
// may call it.
Tensor mirrored_to(Context& ctx, const Tensor& x, std::int64_t rows, std::int64_t columns);

// The mean of the pictures that the published models were trained with (DIV2K), times `factor`: (1,
// 1, 1, 3) f32. Of other than three colours the models take none: zeros.
Tensor colour_mean(Context& ctx, std::int64_t colours, double factor);

// x times a number.
inline Tensor scaled(Context& ctx, const Tensor& x, double factor) {
  return ops::combine(ctx, {{factor, x}});
}

// The mean over rows and columns: (B, H, W, C) -> (B, 1, 1, C). Attention whose scores are all 0
// gives the mean of its values; row by row first, so that many are made side by side.
Tensor mean_of(Context& ctx, const Tensor& x);

// 1 / (1 + exp(-x)), which is (1 + tanh(x / 2)) / 2.
Tensor sigmoid(Context& ctx, const Tensor& x);

}  // namespace heddle::upscalers
