#include "upscaler_blocks.h"

namespace heddle::upscalers {

Tensor leaky_conv(Context& ctx, const Tensor& x, const Tensor& filter, const Tensor& bias,
                  double slope) {
  const Tensor out = ops::conv2d(ctx, x, filter, bias, kSame);
  leak(ctx, out, slope);
  return out;
}

Tensor shuffled(Context& ctx, const Tensor& x, std::int64_t factor) {
  const std::int64_t batch = x.size(0), height = x.size(1), width = x.size(2),
                     channels = x.size(3) / (factor * factor);
  const Tensor out = ctx.make({batch, height * factor, width * factor, channels}, x.dtype());
  ops::copy_into(
      ctx, x.reshape({batch, height, width, channels, factor, factor}).permute({0, 1, 4, 2, 5, 3}),
      out.reshape({batch, height, factor, width, factor, channels}));
  return out;
}

Tensor unshuffled(Context& ctx, const Tensor& x, std::int64_t factor) {
  const std::int64_t batch = x.size(0), height = x.size(1) / factor, width = x.size(2) / factor,
                     channels = x.size(3);
  const Tensor out = ctx.make({batch, height, width, channels * factor * factor}, x.dtype());
  ops::copy_into(
      ctx, x.reshape({batch, height, factor, width, factor, channels}).permute({0, 1, 3, 5, 2, 4}),
      out.reshape({batch, height, width, channels, factor, factor}));
  return out;
}

}  // namespace heddle::upscalers
