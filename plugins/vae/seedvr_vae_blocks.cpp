#include "seedvr_vae_blocks.h"

#include <cmath>

#include <heddle/frame_ops.hpp>

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kSeedPoint{{1, 1}, {0, 0, 0, 0}};             // 1x1
constexpr heddle_conv2d_attrs kSeedHalved{{2, 2}, {0, 0, 1, 1}};            // nothing right, below
constexpr heddle_conv3d_attrs kSeedSame{{1, 1, 1}, {0, 1, 1, 0, 1, 1}};     // 3x3x3
constexpr heddle_conv3d_attrs kSeedQuarter{{2, 2, 2}, {0, 0, 0, 0, 1, 1}};  // of frames, too
constexpr std::int64_t kSeedBefore = 2;                                     // frames
constexpr double kSeedEps = 1e-6;
constexpr std::int32_t kSeedGroups = 32;

Tensor seed_kept(Context& ctx, const Input<Tensor>& input) {
  return ctx.has(input) ? ctx[input] : Tensor();
}
// Before a run a chunk's type is told as f32; what products read is in the compute type.
Tensor in_seed_compute(Context& ctx, const Tensor& x) {
  return x.dtype() == ctx.compute() ? x : ops::cast(ctx, x, ctx.compute());
}

// Frames with those before them, for a causal filter: (N, before + T, H, W, C).
class SeedFrames {
 public:
  // shape: of the chunk, (T, H, W, C).
  SeedFrames(Context& ctx, const Shape& shape, bool pictures, const Tensor& kept)
      : ctx_(ctx),
        before_(kept ? kept.size(0) : kSeedBefore),
        all_(ctx.make({pictures ? shape[0] : 1, before_ + (pictures ? 1 : shape[0]), shape[1],
                       shape[2], shape[3]})),
        kept_(kept) {}

  // Where the chunk is to be written, (N, T, H, W, C); or all of it, of one shape (T, H, W, C).
  Tensor chunk() const { return all_.slice(1, before_, all_.size(1)); }
  void write(const Tensor& x) const { ops::copy_into(ctx_, x.reshape(chunk().shape()), chunk()); }

  // What the filter makes of it and adds to base, which may be empty: (T', H', W', C').
  Tensor filtered(const Tensor& weight, const Tensor& bias, heddle_dtype dtype,
                  const Tensor& base = {}, const heddle_conv3d_attrs& attrs = kSeedSame) const {
    for (std::int64_t t = 0; t < before_; ++t) {
      const Tensor to = all_.slice(1, t, t + 1);
      ops::copy_into(
          ctx_, kept_ ? kept_.slice(0, t, t + 1).reshape(to.shape()) : chunk().slice(1, 0, 1), to);
    }
    const Shape shape = ops::conv3d_shape(all_, weight, attrs);
    const Tensor out = ctx_.make(shape, dtype);
    ops::conv3d_into(ctx_, all_, weight, bias, attrs, base ? base.reshape(shape) : Tensor(), out);
    return out.reshape({shape[0] * shape[1], shape[2], shape[3], shape[4]});
  }

  // What the next chunk is given, (count, H, W, C); of pictures nobody reads it.
  Tensor keeps(std::int64_t count = kSeedBefore) const {
    const std::int64_t end = all_.size(1);
    return ops::contiguous(ctx_, all_.slice(0, 0, 1).slice(1, end - count, end))
        .reshape({count, all_.size(2), all_.size(3), all_.size(4)});
  }

 private:
  Context& ctx_;
  const std::int64_t before_;
  const Tensor all_, kept_;
};

Tensor seed_normed(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   heddle_activation activation) {
  return ops::group_norm(ctx, x, weight, bias,
                         heddle_group_norm_attrs{kSeedEps, kSeedGroups, activation});
}

// A group norm of each frame with SiLU, and the frames before.
SeedFrames seed_normed_frames(Context& ctx, const Tensor& x, const Tensor& weight,
                              const Tensor& bias, bool pictures, const Tensor& kept) {
  const SeedFrames frames(ctx, x.shape(), pictures, kept);
  frames.write(seed_normed(ctx, x, weight, bias, HEDDLE_ACT_SILU));
  return frames;
}

void require_even_sides(const Tensor& x, bool halves_frames) {
  if (x.size(1) % 2 == 0 && x.size(2) % 2 == 0 && (!halves_frames || x.size(0) % 2 == 0)) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "a chunk of " + std::to_string(x.size(0)) + " frames of " +
                  std::to_string(x.size(2)) + "x" + std::to_string(x.size(1)) +
                  " cannot be halved. Give pictures whose sides are multiples of 8.");
}

}  // namespace

void SeedvrVaeLatentIn::execute(Context& ctx) {
  const Tensor x = ops::cast(ctx, ctx[z].permute({0, 2, 3, 1}), ctx.compute());
  const SeedFrames frames(ctx, x.shape(), ctx[pictures], seed_kept(ctx, kept));
  frames.write(x);
  ctx[out] = frames.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = frames.keeps();
}

void SeedvrVaeImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  if (pixels.size(3) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the encoder takes " + std::to_string(ctx[conv].size(1)) +
                                             " channels, the pictures have " +
                                             std::to_string(pixels.size(3)));
  const SeedFrames frames(ctx, pixels.shape(), ctx[pictures], seed_kept(ctx, kept));
  frames.write(pixels);
  ctx[out] = frames.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = frames.keeps();
}

void SeedvrVaeResnet::execute(Context& ctx) {
  const Tensor x = in_seed_compute(ctx, ctx[hidden]);
  const bool apart = ctx[pictures];
  Tensor middle;
  {
    const SeedFrames frames =
        seed_normed_frames(ctx, x, ctx[norm1], ctx[norm1_bias], apart, seed_kept(ctx, kept1));
    middle = frames.filtered(ctx[conv1], ctx[conv1_bias], ctx.compute());
    ctx[keeps1] = frames.keeps();
  }
  const Tensor base =
      ctx[shortcut] ? ops::conv2d(ctx, x, ctx[shortcut], ctx[shortcut_bias], kSeedPoint) : x;
  const SeedFrames frames =
      seed_normed_frames(ctx, middle, ctx[norm2], ctx[norm2_bias], apart, seed_kept(ctx, kept2));
  ctx[out] = frames.filtered(ctx[conv2], ctx[conv2_bias], ctx.compute(), base);
  ctx[keeps2] = frames.keeps();
}

void SeedvrVaeAttention::execute(Context& ctx) {
  const Tensor x = in_seed_compute(ctx, ctx[hidden]);
  const std::int64_t frames = x.size(0), area = x.size(1) * x.size(2), channels = x.size(3);
  const Tensor normed = seed_normed(ctx, x, ctx[norm], ctx[norm_bias], HEDDLE_ACT_NONE);
  const Tensor all =
      ops::linear(ctx, normed, ctx[qkv], ctx[qkv_bias]).reshape({frames, area, 1, 3 * channels});
  const Tensor seen =
      ops::attention(ctx, all.slice(3, 0, channels), all.slice(3, channels, 2 * channels),
                     all.slice(3, 2 * channels, 3 * channels), {}, 1 / std::sqrt(double(channels)));
  ctx[out] =
      ops::linear(ctx, seen.reshape(x.shape()), ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
}

void SeedvrVaeUpsample::execute(Context& ctx) {
  const Tensor x = in_seed_compute(ctx, ctx[hidden]);
  const Tensor made = ops::conv2d(ctx, x, ctx[spread], ctx[spread_bias], kSeedPoint);
  const std::int64_t count = x.size(0), height = x.size(1), width = x.size(2),
                     told = ctx[time] ? 2 : 1, channels = made.size(3) / (4 * told);
  // Of a video's first frame, and of pictures, the first of two frames stays.
  const std::int64_t times = ctx[time] && ctx.has(kept) ? 2 : 1;
  const SeedFrames frames(ctx, {times * count, 2 * height, 2 * width, channels}, ctx[pictures],
                          seed_kept(ctx, kept));
  const Tensor squares = made.reshape({count, height, width, 4, told * channels}),
               to = frames.chunk().reshape({count, times, 2 * height, 2 * width, channels});
  for (std::int64_t i = 0; i < times; ++i)
    ops::copy_into(ctx,
                   squares.slice(4, i * channels, (i + 1) * channels)
                       .reshape({count, height, width, 2, 2, channels})
                       .permute({0, 1, 3, 2, 4, 5}),
                   to.slice(1, i, i + 1).reshape({count, height, 2, width, 2, channels}));
  ctx[out] = frames.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = frames.keeps();
}

void SeedvrVaeHalve::execute(Context& ctx) {
  const Tensor x = in_seed_compute(ctx, ctx[hidden]);
  require_even_sides(x, false);
  ctx[out] = ops::conv2d(ctx, x, ctx[conv], ctx[conv_bias], kSeedHalved);
}

void SeedvrVaeDownsample::execute(Context& ctx) {
  const Tensor x = in_seed_compute(ctx, ctx[hidden]);
  require_even_sides(x, ctx.has(kept));
  const SeedFrames frames(ctx, x.shape(), ctx[pictures], seed_kept(ctx, kept));
  frames.write(x);
  ctx[out] = frames.filtered(ctx[conv], ctx[conv_bias], ctx.compute(), {}, kSeedQuarter);
  ctx[keeps] = frames.keeps(1);
}

void SeedvrVaeImageOut::execute(Context& ctx) {
  const Tensor x = in_seed_compute(ctx, ctx[hidden]);
  const SeedFrames frames =
      seed_normed_frames(ctx, x, ctx[norm], ctx[norm_bias], ctx[pictures], seed_kept(ctx, kept));
  ctx[image] = frames.filtered(ctx[conv], ctx[conv_bias], HEDDLE_F32);
  ctx[keeps] = frames.keeps();
}

void SeedvrVaeLatentOut::execute(Context& ctx) {
  const Tensor x = in_seed_compute(ctx, ctx[hidden]);
  const SeedFrames frames =
      seed_normed_frames(ctx, x, ctx[norm], ctx[norm_bias], ctx[pictures], seed_kept(ctx, kept));
  const Tensor moments = frames.filtered(ctx[conv], ctx[conv_bias], ctx.compute());
  ctx[keeps] = frames.keeps();
  const std::int64_t channels = moments.size(3) / 2;
  const auto planes = [&](std::int64_t begin) {
    return ops::cast(ctx, moments.slice(3, begin, begin + channels).permute({0, 3, 1, 2}),
                     HEDDLE_F32);
  };
  ctx[mean] = planes(0);
  ctx[logvar] = ops::scale_clamp(ctx, planes(channels), heddle_scale_clamp_attrs{1, 0, -30, 20});
}

}  // namespace heddle::vae
