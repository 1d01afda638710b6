#include "wan_video_blocks.h"

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kVideoPoint{{1, 1}, {0, 0, 0, 0}};  // 1x1
constexpr heddle_conv2d_attrs kVideoSame{{1, 1}, {1, 1, 1, 1}};   // 3x3 that keeps the size
// PyTorch's normalize() divides by the length, but by no less than 1e-12.
constexpr double kVideoEps = 1e-24;

// A filter over three frames, as three over one each: of the frame itself, and of the two before
// it, which are empty where nothing was before.
struct Filters {
  Tensor now, first, second, bias;
  heddle_conv2d_attrs attrs = kVideoSame;
};

// Before a run a chunk's type is told as f32; what products read is in the compute type.
Tensor in_compute(Context& ctx, const Tensor& x) {
  return x.dtype() == ctx.compute() ? x : ops::cast(ctx, x, ctx.compute());
}

// A chunk of T frames behind what was kept before it: (before + T, ...). The frames are to be
// written to `chunk`.
struct Frames {
  Tensor all, chunk;
};
Frames frames_behind(Context& ctx, const Tensor& kept, std::int64_t before, Shape shape) {
  const std::int64_t count = shape[0];
  shape[0] = before + count;
  Frames made;
  made.all = ctx.make(shape);
  made.chunk = made.all.slice(0, before, before + count);
  const Tensor earlier = made.all.slice(0, 0, before);
  if (kept)
    ops::copy_into(ctx, kept, earlier);
  else
    ops::fill(ctx, earlier, 0);
  return made;
}

Tensor last_frames(Context& ctx, const Frames& frames, std::int64_t count) {
  const std::int64_t end = frames.all.size(0);
  return ops::contiguous(ctx, frames.all.slice(0, end - count, end));
}

void normed_into(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& out) {
  ops::rms_norm_into(ctx, x, weight.reshape({x.size(3)}), kVideoEps, out);
  ops::activate_into(ctx, out, HEDDLE_ACT_SILU, out);
}

Tensor wide_sum(Context& ctx, const Tensor& x, const Tensor& filter, const Tensor& bias,
                const heddle_conv2d_attrs& attrs, const Tensor& sum) {
  const Tensor out = ctx.make(ops::conv2d_shape(x, filter, attrs), HEDDLE_F32);
  ops::conv2d_into(ctx, x, filter, bias, attrs, sum, out);
  return out;
}

// One frame of what the filters make of frames [at, at + 3), plus `base` where that is given. The
// three parts are summed in f32, and rounded once. A frame at a time, so that sums take little
// room.
void frame_into(Context& ctx, const Tensor& all, std::int64_t at, const Filters& filters,
                const Tensor& base, const Tensor& out) {
  const auto frame = [&](std::int64_t i) { return all.slice(0, at + i, at + i + 1); };
  if (!filters.first) {
    ops::conv2d_into(ctx, frame(2), filters.now, filters.bias, filters.attrs, base, out);
    return;
  }
  Tensor sum = base;
  if (sum && sum.dtype() != HEDDLE_F32) sum = ops::cast(ctx, sum, HEDDLE_F32);
  sum = wide_sum(ctx, frame(0), filters.first, {}, filters.attrs, sum);
  sum = wide_sum(ctx, frame(1), filters.second, {}, filters.attrs, sum);
  if (out.dtype() == HEDDLE_F32) {
    ops::conv2d_into(ctx, frame(2), filters.now, filters.bias, filters.attrs, sum, out);
    return;
  }
  const Tensor last = wide_sum(ctx, frame(2), filters.now, filters.bias, filters.attrs, sum);
  ops::copy_into(ctx, last, out);
}

// all (T + 2, H, W, C) -> (T, H, W, C').
Tensor causal(Context& ctx, const Tensor& all, const Filters& filters, heddle_dtype dtype,
              const Tensor& base = {}) {
  Shape shape = all.shape();
  shape[0] -= 2;
  shape[3] = filters.now.size(0);
  const Tensor out = ctx.make(shape, dtype);
  for (std::int64_t t = 0; t < shape[0]; ++t)
    frame_into(ctx, all, t, filters, base ? base.slice(0, t, t + 1) : Tensor(),
               out.slice(0, t, t + 1));
  return out;
}

Tensor kept_of(Context& ctx, const Input<Tensor>& input) {
  return ctx.has(input) ? ctx[input] : Tensor();
}

}  // namespace

void WanVideoLatentIn::execute(Context& ctx) {
  const Tensor x = ops::cast(ctx, ctx[z].permute({0, 2, 3, 1}), ctx.compute());
  const Frames frames = frames_behind(ctx, kept_of(ctx, kept), 2, x.shape());
  ops::conv2d_into(ctx, x, ctx[quant], ctx[quant_bias], kVideoPoint, {}, frames.chunk);
  const Filters filters{ctx[conv], ctx[conv_first], ctx[conv_second], ctx[conv_bias]};
  ctx[out] = causal(ctx, frames.all, filters, ctx.compute());
  ctx[keeps] = last_frames(ctx, frames, 2);
}

void WanVideoImageIn::execute(Context& ctx) {
  const Tensor pixels = ctx[image];
  if (pixels.size(3) != ctx[conv].size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the encoder takes " + std::to_string(ctx[conv].size(1)) +
                                             " channels, the pictures have " +
                                             std::to_string(pixels.size(3)));
  const Frames frames = frames_behind(ctx, kept_of(ctx, kept), 2, pixels.shape());
  ops::copy_into(ctx, pixels, frames.chunk);
  const Filters filters{ctx[conv], ctx[conv_first], ctx[conv_second], ctx[conv_bias]};
  ctx[out] = causal(ctx, frames.all, filters, ctx.compute());
  ctx[keeps] = last_frames(ctx, frames, 2);
}

void WanVideoResnet::execute(Context& ctx) {
  const Tensor x = in_compute(ctx, ctx[hidden]);
  const Frames before = frames_behind(ctx, kept_of(ctx, kept1), 2, x.shape());
  normed_into(ctx, x, ctx[norm1], before.chunk);
  const Filters filters1{ctx[conv1], ctx[conv1_first], ctx[conv1_second], ctx[conv1_bias]};
  const Tensor middle = causal(ctx, before.all, filters1, ctx.compute());
  ctx[keeps1] = last_frames(ctx, before, 2);
  const Frames behind = frames_behind(ctx, kept_of(ctx, kept2), 2, middle.shape());
  normed_into(ctx, middle, ctx[norm2], behind.chunk);
  const Filters filters2{ctx[conv2], ctx[conv2_first], ctx[conv2_second], ctx[conv2_bias]};
  const Tensor base =
      ctx[shortcut] ? ops::conv2d(ctx, x, ctx[shortcut], ctx[shortcut_bias], kVideoPoint) : x;
  ctx[out] = causal(ctx, behind.all, filters2, ctx.compute(), base);
  ctx[keeps2] = last_frames(ctx, behind, 2);
}

void WanTimeBegin::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  if (!ctx[doubles]) {
    ctx[keeps] = ops::cast(ctx, x, ctx.compute());
    return;
  }
  Shape shape = x.shape();
  shape[0] = 2;
  const Tensor zeros = ctx.make(shape);
  ops::fill(ctx, zeros, 0);
  ctx[keeps] = zeros;
}

void WanTimeUpsample::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t count = x.size(0), height = x.size(1), width = x.size(2), channels = x.size(3);
  const Frames frames = frames_behind(ctx, ctx[kept], 2, x.shape());
  ops::copy_into(ctx, x, frames.chunk);
  const Filters filters{ctx[conv], ctx[conv_first], ctx[conv_second], ctx[conv_bias], kVideoPoint};
  const Tensor pairs = causal(ctx, frames.all, filters, ctx.compute())
                           .reshape({count, height, width, 2, channels})
                           .permute({0, 3, 1, 2, 4});
  const Tensor doubled = ctx.make({2 * count, height, width, channels});
  ops::copy_into(ctx, pairs, doubled.reshape(pairs.shape()));
  ctx[out] = doubled;
  ctx[keeps] = last_frames(ctx, frames, 2);
}

void WanTimeDownsample::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  if (x.size(0) % 2 != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a chunk of " + std::to_string(x.size(0)) + " frames cannot be halved");
  const Frames frames = frames_behind(ctx, ctx[kept], 1, x.shape());
  ops::copy_into(ctx, x, frames.chunk);
  const Filters filters{ctx[conv], ctx[conv_first], ctx[conv_second], ctx[conv_bias], kVideoPoint};
  Shape shape = x.shape();
  shape[0] /= 2;
  const Tensor halved = ctx.make(shape);
  for (std::int64_t t = 0; t < shape[0]; ++t)
    frame_into(ctx, frames.all, 2 * t, filters, {}, halved.slice(0, t, t + 1));
  ctx[out] = halved;
  ctx[keeps] = last_frames(ctx, frames, 1);
}

void WanVideoImageOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Frames frames = frames_behind(ctx, kept_of(ctx, kept), 2, x.shape());
  normed_into(ctx, x, ctx[norm], frames.chunk);
  const Filters filters{ctx[conv], ctx[conv_first], ctx[conv_second], ctx[conv_bias]};
  ctx[image] = causal(ctx, frames.all, filters, HEDDLE_F32);
  ctx[keeps] = last_frames(ctx, frames, 2);
}

void WanVideoLatentOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Frames frames = frames_behind(ctx, kept_of(ctx, kept), 2, x.shape());
  normed_into(ctx, x, ctx[norm], frames.chunk);
  const Filters filters{ctx[conv], ctx[conv_first], ctx[conv_second], ctx[conv_bias]};
  const Tensor last = causal(ctx, frames.all, filters, ctx.compute());
  const Tensor moments = ops::conv2d(ctx, last, ctx[quant], ctx[quant_bias], kVideoPoint);
  ctx[mean] =
      ops::cast(ctx, moments.slice(3, 0, moments.size(3) / 2).permute({0, 3, 1, 2}), HEDDLE_F32);
  ctx[keeps] = last_frames(ctx, frames, 2);
}

}  // namespace heddle::vae
