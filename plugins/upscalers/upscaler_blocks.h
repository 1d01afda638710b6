// plugins/upscalers/upscaler_blocks.h - what blocks of several upscalers do: pixels put into
// channels and back, and leaky activations. Inside, pictures are (B, H, W, C). Any thread.
#pragma once

#include <heddle/ops.hpp>

namespace heddle::upscalers {

inline constexpr heddle_conv2d_attrs kSame{{1, 1}, {1, 1, 1, 1}};  // 3x3 that keeps the size

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

}  // namespace heddle::upscalers
