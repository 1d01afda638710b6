#include "hunyuan15_blocks.h"

#include <cmath>

#include "hunyuan15_frames.h"

namespace heddle::vae {
namespace {

// The means of so many numbers of x (T, H, W, C) in a row: (T, H, W, C / count).
Tensor means_of(Context& ctx, const Tensor& x, std::int64_t count) {
  if (count == 1) return x;
  const Shape shape{x.size(0), x.size(1), x.size(2), x.size(3) / count};
  const Tensor groups = x.reshape({shape[0], shape[1], shape[2], shape[3], count});
  std::vector<ops::Term> terms;
  for (std::int64_t i = 0; i < count; ++i)
    terms.push_back(
        {1.0 / double(count), ops::contiguous(ctx, groups.slice(4, i, i + 1)).reshape(shape)});
  Tensor sum = ops::combine(ctx, {terms.front()});
  for (std::size_t i = 1; i < terms.size(); ++i) sum = ops::combine(ctx, {{1.0, sum}, terms[i]});
  return sum;
}

// x (T, H, W, n 4 C) -> (n T, 2 H, 2 W, C): its numbers are those of n frames, rows and columns.
Tensor spread(Context& ctx, const Tensor& x, std::int64_t n) {
  const std::int64_t count = x.size(0), height = x.size(1), width = x.size(2),
                     channels = x.size(3) / (4 * n);
  const Tensor out = ctx.make({n * count, 2 * height, 2 * width, channels}, x.dtype());
  for (std::int64_t i = 0; i < n; ++i)
    ops::copy_into(ctx,
                   x.slice(3, i * 4 * channels, (i + 1) * 4 * channels)
                       .reshape({count, height, width, 2, 2, channels})
                       .permute({0, 1, 3, 2, 4, 5}),
                   out.reshape({count, n, 4 * height * width * channels})
                       .slice(1, i, i + 1)
                       .reshape({count, height, 2, width, 2, channels}));
  return out;
}

// And back: x (n T, 2 H, 2 W, C) -> (T, H, W, n 4 C).
Tensor gathered(Context& ctx, const Tensor& x, std::int64_t n) {
  const std::int64_t count = x.size(0) / n, height = x.size(1) / 2, width = x.size(2) / 2,
                     channels = x.size(3);
  const Tensor out = ctx.make({count, height, width, n * 4 * channels}, x.dtype());
  for (std::int64_t i = 0; i < n; ++i)
    ops::copy_into(ctx,
                   x.reshape({count, n, 4 * height * width * channels})
                       .slice(1, i, i + 1)
                       .reshape({count, height, 2, width, 2, channels})
                       .permute({0, 1, 3, 2, 4, 5}),
                   out.slice(3, i * 4 * channels, (i + 1) * 4 * channels)
                       .reshape({count, height, width, 2, 2, channels}));
  return out;
}

void require_even(const Tensor& x, bool halves_frames) {
  if (x.size(1) % 2 == 0 && x.size(2) % 2 == 0 && (!halves_frames || x.size(0) % 2 == 0)) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "a chunk of " + std::to_string(x.size(0)) + " frames of " +
                  std::to_string(x.size(2)) + "x" + std::to_string(x.size(1)) +
                  " cannot be halved. Give pictures whose sides are multiples of 16.");
}

}  // namespace

void Hunyuan15LatentIn::execute(Context& ctx) {
  const Tensor x = ops::cast(ctx, ctx[z].permute({0, 2, 3, 1}), ctx.compute());
  const HunyuanEdged edged(ctx, x.shape(), ctx[pictures], hunyuan_kept(ctx, kept));
  ops::copy_into(ctx, hunyuan_videos(x, ctx[pictures]), edged.chunk());
  const Tensor made = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[out] = ops::add(ctx, made, hunyuan_repeated(ctx, x, made.size(3) / x.size(3)));
  ctx[keeps] = edged.keeps();
}

void Hunyuan15ImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  if (pixels.size(3) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the encoder takes " + std::to_string(ctx[conv].size(1)) +
                                             " channels, the pictures have " +
                                             std::to_string(pixels.size(3)));
  const HunyuanEdged edged(ctx, pixels.shape(), ctx[pictures], hunyuan_kept(ctx, kept));
  ops::copy_into(ctx, hunyuan_videos(pixels, ctx[pictures]), edged.chunk());
  ctx[out] = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = edged.keeps();
}

void Hunyuan15Resnet::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]);
  const bool apart = ctx[pictures];
  Tensor middle;
  {
    const HunyuanEdged edged(ctx, x.shape(), apart, hunyuan_kept(ctx, kept1));
    hunyuan_normed_to(ctx, x, ctx[norm1], apart, edged.chunk());
    middle = edged.filtered(ctx[conv1], ctx[conv1_bias], ctx.compute());
    ctx[keeps1] = edged.keeps();
  }
  const HunyuanEdged edged(ctx, middle.shape(), apart, hunyuan_kept(ctx, kept2));
  hunyuan_normed_to(ctx, middle, ctx[norm2], apart, edged.chunk());
  ctx[out] = ops::add(ctx, edged.filtered(ctx[conv2], ctx[conv2_bias], ctx.compute()), x);
  ctx[keeps2] = edged.keeps();
}

void Hunyuan15Attention::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]), before = hunyuan_kept(ctx, kept);
  const std::int64_t count = x.size(0), height = x.size(1), width = x.size(2), channels = x.size(3),
                     area = height * width, earlier = before ? before.size(0) : 0;
  const Tensor normed = ops::rms_norm(ctx, x, ctx[norm].reshape({channels}), kHunyuanEps);
  const Tensor all = ops::conv2d(ctx, normed, ctx[qkv], ctx[qkv_bias], kHunyuanPoint);
  const Tensor known = ctx.make({earlier + count, height, width, 2 * channels});
  if (earlier > 0) ops::copy_into(ctx, before, known.slice(0, 0, earlier));
  ops::copy_into(ctx, all.slice(3, channels, 3 * channels),
                 known.slice(0, earlier, earlier + count));
  const Tensor seen = ctx.make({count, height, width, channels});
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t begin = ctx[pictures] ? t : 0, end = earlier + t + 1;
    const auto rows = [&](const Tensor& of, std::int64_t first, std::int64_t last) {
      return of.slice(0, first, last).reshape({1, (last - first) * area, 1, of.size(3)});
    };
    const Tensor kv = rows(known, begin, end);
    ops::attention_into(ctx, rows(all, t, t + 1).slice(3, 0, channels), kv.slice(3, 0, channels),
                        kv.slice(3, channels, 2 * channels), {}, 1 / std::sqrt(double(channels)),
                        ops::Mask::none, rows(seen, t, t + 1));
  }
  ctx[out] = ops::conv2d(ctx, seen, ctx[proj], ctx[proj_bias], kHunyuanPoint, x);
  ctx[keeps] = known;
}

void Hunyuan15Upsample::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]);
  const HunyuanEdged edged(ctx, x.shape(), ctx[pictures], hunyuan_kept(ctx, kept));
  ops::copy_into(ctx, hunyuan_videos(x, ctx[pictures]), edged.chunk());
  Tensor made = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = edged.keeps();
  const bool doubles = ctx[time] && ctx.has(kept);
  if (ctx[time] && !doubles) {
    // Of each place in a square the first half: that of the first of two frames.
    const std::int64_t half = made.size(3) / 8;
    const Shape shape{made.size(0), made.size(1), made.size(2), 4 * half};
    made = ops::contiguous(
               ctx, made.reshape({shape[0], shape[1], shape[2], 4, 2 * half}).slice(4, 0, half))
               .reshape(shape);
  }
  const Tensor sum = ops::add(ctx, made, hunyuan_repeated(ctx, x, made.size(3) / x.size(3)));
  ctx[out] = spread(ctx, sum, doubles ? 2 : 1);
}

void Hunyuan15Downsample::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]);
  const bool halves = ctx[time] && ctx.has(kept);
  require_even(x, halves);
  const HunyuanEdged edged(ctx, x.shape(), ctx[pictures], hunyuan_kept(ctx, kept));
  ops::copy_into(ctx, hunyuan_videos(x, ctx[pictures]), edged.chunk());
  const Tensor filtered = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = edged.keeps();
  const std::int64_t frames = halves ? 2 : 1;
  Tensor made = gathered(ctx, filtered, frames);
  if (ctx[time] && !halves) {
    // A video's first frame stands for both.
    Shape shape = made.shape();
    const std::int64_t half = shape[3];
    shape[3] = 2 * half;
    const Tensor twice = ctx.make(shape);
    for (const std::int64_t i : {0, 1})
      ops::copy_into(ctx, made, twice.slice(3, i * half, (i + 1) * half));
    made = twice;
  }
  const Tensor raw = gathered(ctx, x, frames);
  ctx[out] = ops::add(ctx, made, means_of(ctx, raw, raw.size(3) / made.size(3)));
}

void Hunyuan15ImageOut::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]);
  const HunyuanEdged edged(ctx, x.shape(), ctx[pictures], hunyuan_kept(ctx, kept));
  hunyuan_normed_to(ctx, x, ctx[norm], ctx[pictures], edged.chunk());
  ctx[image] = edged.filtered(ctx[conv], ctx[conv_bias], HEDDLE_F32);
  ctx[keeps] = edged.keeps();
}

void Hunyuan15LatentOut::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]);
  const HunyuanEdged edged(ctx, x.shape(), ctx[pictures], hunyuan_kept(ctx, kept));
  hunyuan_normed_to(ctx, x, ctx[norm], ctx[pictures], edged.chunk());
  const Tensor made = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = edged.keeps();
  const Tensor moments = ops::add(ctx, made, means_of(ctx, x, x.size(3) / made.size(3)));
  const std::int64_t channels = moments.size(3) / 2;
  const auto planes = [&](std::int64_t begin) {
    return ops::cast(ctx, moments.slice(3, begin, begin + channels).permute({0, 3, 1, 2}),
                     HEDDLE_F32);
  };
  ctx[mean] = planes(0);
  ctx[logvar] = ops::scale_clamp(ctx, planes(channels), heddle_scale_clamp_attrs{1, 0, -30, 20});
}

}  // namespace heddle::vae
