#include "hunyuan15_blocks.h"

#include <cmath>

#include <heddle/frame_ops.hpp>

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kHunyuanPoint{{1, 1}, {0, 0, 0, 0}};            // 1x1
constexpr heddle_conv3d_attrs kHunyuanFilter{{1, 1, 1}, {0, 0, 0, 0, 0, 0}};  // 3x3x3
constexpr std::int64_t kFramesBefore = 2;
// PyTorch's normalize() divides by the length, but by no less than 1e-12.
constexpr double kHunyuanEps = 1e-24;

// x (T, H, W, C) as videos: (1, T, H, W, C), or of pictures (T, 1, H, W, C).
Tensor as_videos(const Tensor& x, bool pictures) {
  return x.reshape(
      {pictures ? x.size(0) : 1, pictures ? 1 : x.size(0), x.size(1), x.size(2), x.size(3)});
}

// Frames with those before them and all edges, for a filter: (N, 2 + T, H + 2, W + 2, C).
class Edged {
 public:
  // shape: of the chunk, (T, H, W, C).
  Edged(Context& ctx, const Shape& shape, bool pictures, const Tensor& kept)
      : ctx_(ctx),
        all_(ctx.make({pictures ? shape[0] : 1, kFramesBefore + (pictures ? 1 : shape[0]),
                       shape[1] + 2, shape[2] + 2, shape[3]})),
        shape_(shape),
        kept_(kept) {}

  // Where the chunk is to be written, (N, T, H, W, C).
  Tensor chunk() const { return inside().slice(1, kFramesBefore, all_.size(1)); }

  // What the filter makes of it, (T, H, W, C').
  Tensor filtered(const Tensor& weight, const Tensor& bias, heddle_dtype dtype) const {
    complete();
    const Shape shape = ops::conv3d_shape(all_, weight, kHunyuanFilter);
    const Tensor out = ctx_.make(shape, dtype);
    ops::conv3d_into(ctx_, all_, weight, bias, kHunyuanFilter, {}, out);
    return out.reshape({shape[0] * shape[1], shape[2], shape[3], shape[4]});
  }

  // What the next chunk is given, (2, H, W, C); of pictures nobody reads it.
  Tensor keeps() const {
    const std::int64_t end = all_.size(1);
    return ops::contiguous(ctx_, inside().slice(0, 0, 1).slice(1, end - kFramesBefore, end))
        .reshape({kFramesBefore, shape_[1], shape_[2], shape_[3]});
  }

 private:
  Tensor inside() const { return all_.slice(2, 1, 1 + shape_[1]).slice(3, 1, 1 + shape_[2]); }
  void complete() const {
    const Tensor pixels = inside(), first = pixels.slice(1, kFramesBefore, kFramesBefore + 1);
    for (std::int64_t t = 0; t < kFramesBefore; ++t) {
      const Tensor to = pixels.slice(1, t, t + 1);
      ops::copy_into(ctx_, kept_ ? kept_.slice(0, t, t + 1).reshape(to.shape()) : first, to);
    }
    // Columns first, then whole rows, corners among them.
    for (const int axis : {3, 2}) {
      const Tensor among = axis == 3 ? all_.slice(2, 1, 1 + shape_[1]) : all_;
      const std::int64_t last = among.size(axis) - 1;
      ops::copy_into(ctx_, among.slice(axis, 1, 2), among.slice(axis, 0, 1));
      ops::copy_into(ctx_, among.slice(axis, last - 1, last), among.slice(axis, last, last + 1));
    }
  }

  Context& ctx_;
  const Tensor all_;
  const Shape shape_;
  const Tensor kept_;
};

Tensor kept_before(Context& ctx, const Input<Tensor>& input) {
  return ctx.has(input) ? ctx[input] : Tensor();
}
// Before a run a chunk's type is told as f32; what products read is in the compute type.
Tensor in_hunyuan_compute(Context& ctx, const Tensor& x) {
  return x.dtype() == ctx.compute() ? x : ops::cast(ctx, x, ctx.compute());
}

void normed_to(Context& ctx, const Tensor& x, const Tensor& weight, bool pictures,
               const Tensor& to) {
  const Tensor made = ops::rms_norm(ctx, x, weight.reshape({x.size(3)}), kHunyuanEps);
  ops::activate_into(ctx, as_videos(made, pictures), HEDDLE_ACT_SILU, to);
}

// Each number of x (T, H, W, C) so often, one after another.
Tensor repeated(Context& ctx, const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  const Tensor all = ctx.make({x.size(0), x.size(1), x.size(2), x.size(3), times});
  const Tensor one = x.reshape({x.size(0), x.size(1), x.size(2), x.size(3), 1});
  for (std::int64_t i = 0; i < times; ++i) ops::copy_into(ctx, one, all.slice(4, i, i + 1));
  return all.reshape({x.size(0), x.size(1), x.size(2), x.size(3) * times});
}

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
  const Edged edged(ctx, x.shape(), ctx[pictures], kept_before(ctx, kept));
  ops::copy_into(ctx, as_videos(x, ctx[pictures]), edged.chunk());
  const Tensor made = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[out] = ops::add(ctx, made, repeated(ctx, x, made.size(3) / x.size(3)));
  ctx[keeps] = edged.keeps();
}

void Hunyuan15ImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  if (pixels.size(3) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the encoder takes " + std::to_string(ctx[conv].size(1)) +
                                             " channels, the pictures have " +
                                             std::to_string(pixels.size(3)));
  const Edged edged(ctx, pixels.shape(), ctx[pictures], kept_before(ctx, kept));
  ops::copy_into(ctx, as_videos(pixels, ctx[pictures]), edged.chunk());
  ctx[out] = edged.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = edged.keeps();
}

void Hunyuan15Resnet::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]);
  const bool apart = ctx[pictures];
  Tensor middle;
  {
    const Edged edged(ctx, x.shape(), apart, kept_before(ctx, kept1));
    normed_to(ctx, x, ctx[norm1], apart, edged.chunk());
    middle = edged.filtered(ctx[conv1], ctx[conv1_bias], ctx.compute());
    ctx[keeps1] = edged.keeps();
  }
  const Edged edged(ctx, middle.shape(), apart, kept_before(ctx, kept2));
  normed_to(ctx, middle, ctx[norm2], apart, edged.chunk());
  ctx[out] = ops::add(ctx, edged.filtered(ctx[conv2], ctx[conv2_bias], ctx.compute()), x);
  ctx[keeps2] = edged.keeps();
}

void Hunyuan15Attention::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]), before = kept_before(ctx, kept);
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
  const Edged edged(ctx, x.shape(), ctx[pictures], kept_before(ctx, kept));
  ops::copy_into(ctx, as_videos(x, ctx[pictures]), edged.chunk());
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
  const Tensor sum = ops::add(ctx, made, repeated(ctx, x, made.size(3) / x.size(3)));
  ctx[out] = spread(ctx, sum, doubles ? 2 : 1);
}

void Hunyuan15Downsample::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]);
  const bool halves = ctx[time] && ctx.has(kept);
  require_even(x, halves);
  const Edged edged(ctx, x.shape(), ctx[pictures], kept_before(ctx, kept));
  ops::copy_into(ctx, as_videos(x, ctx[pictures]), edged.chunk());
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
  const Edged edged(ctx, x.shape(), ctx[pictures], kept_before(ctx, kept));
  normed_to(ctx, x, ctx[norm], ctx[pictures], edged.chunk());
  ctx[image] = edged.filtered(ctx[conv], ctx[conv_bias], HEDDLE_F32);
  ctx[keeps] = edged.keeps();
}

void Hunyuan15LatentOut::execute(Context& ctx) {
  const Tensor x = in_hunyuan_compute(ctx, ctx[hidden]);
  const Edged edged(ctx, x.shape(), ctx[pictures], kept_before(ctx, kept));
  normed_to(ctx, x, ctx[norm], ctx[pictures], edged.chunk());
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
