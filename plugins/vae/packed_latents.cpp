#include "packed_latents.h"

#include <limits>

#include <heddle/ops.hpp>

namespace heddle::vae {
namespace {

constexpr double kAnything = std::numeric_limits<double>::infinity();

// Of each channel, (1, 4 C, 1, 1) f32.
Tensor of_channels(Context& ctx, const Tensor& numbers) {
  return ops::cast(ctx, numbers, HEDDLE_F32).reshape({1, numbers.size(0), 1, 1});
}

// 1 / sqrt(v) by Newton's method, as the catalogue has no roots: y (3 - v y^2) / 2. From below it
// grows by half until it is near, so these steps do from 1e-4 (the least, by eps) to 1e6.
Tensor reciprocal_root(Context& ctx, const Tensor& v) {
  constexpr double kStart = 1e-3;
  constexpr int kNewtonSteps = 36;
  Tensor y = ctx.make(v.shape(), HEDDLE_F32);
  ops::fill(ctx, y, kStart);
  for (int i = 0; i < kNewtonSteps; ++i) {
    const Tensor square = ops::mul(ctx, ops::mul(ctx, y, y), v);
    y = ops::mul(ctx, y, ops::scale_clamp(ctx, square, {-0.5, 1.5, -kAnything, kAnything}));
  }
  return y;
}

Tensor with_eps(Context& ctx, const Tensor& variance, double eps) {
  return ops::scale_clamp(ctx, variance, {1, eps, -kAnything, kAnything});
}

// (B, C, 2 h, 2 w) as (B, C, 2, 2, h, w), without copying.
Tensor cells_of(const Tensor& latent) {
  const std::int64_t rows = latent.size(2) / kLatentPack, columns = latent.size(3) / kLatentPack;
  return latent.reshape({latent.size(0), latent.size(1), rows, kLatentPack, columns, kLatentPack})
      .permute({0, 1, 3, 5, 2, 4});
}

}  // namespace

void VaeUnpackLatent::execute(Context& ctx) {
  const Tensor given = ctx[z], v = with_eps(ctx, of_channels(ctx, ctx[variance]), ctx[eps]);
  const std::int64_t packed = v.size(1), channels = packed / (kLatentPack * kLatentPack);
  if (given.size(1) != packed)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the decoder takes latents of " + std::to_string(packed) +
                                             " channels, got " + std::to_string(given.size(1)) +
                                             ". Load the autoencoder that belongs to the model.");
  const Tensor deviation = ops::mul(ctx, v, reciprocal_root(ctx, v));
  const Tensor raw = ops::add(ctx, ops::mul(ctx, ops::cast(ctx, given, HEDDLE_F32), deviation),
                              of_channels(ctx, ctx[mean]));
  const Tensor latent =
      ctx.make({given.size(0), channels, kLatentPack * given.size(2), kLatentPack * given.size(3)},
               HEDDLE_F32);
  const Tensor cells = cells_of(latent);
  ops::copy_into(ctx, raw.reshape(cells.shape()), cells);
  ctx[out] = latent;
}

void VaePackLatent::execute(Context& ctx) {
  const Tensor all = ctx[latent];
  const std::int64_t height = all.size(2) / kLatentPack * kLatentPack,
                     width = all.size(3) / kLatentPack * kLatentPack;
  const Tensor even = ops::contiguous(ctx, all.slice(2, 0, height).slice(3, 0, width));
  const Tensor cells = cells_of(even);
  const Tensor packed = ctx.make(
      {even.size(0), ctx[variance].size(0), height / kLatentPack, width / kLatentPack}, HEDDLE_F32);
  ops::copy_into(ctx, cells, packed.reshape(cells.shape()));
  const Tensor v = with_eps(ctx, of_channels(ctx, ctx[variance]), ctx[eps]);
  const Tensor opposite =
      ops::scale_clamp(ctx, of_channels(ctx, ctx[mean]), {-1, 0, -kAnything, kAnything});
  ctx[out] = ops::mul(ctx, ops::add(ctx, packed, opposite), reciprocal_root(ctx, v));
}

}  // namespace heddle::vae
