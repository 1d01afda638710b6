#include "wan_video_blocks.h"

#include <heddle/frame_ops.hpp>

namespace heddle::vae {
namespace {

constexpr heddle_conv2d_attrs kVideoPoint{{1, 1}, {0, 0, 0, 0}};  // 1x1
// PyTorch's normalize() divides by the length, but by no less than 1e-12.
constexpr double kVideoEps = 1e-24;

constexpr heddle_conv3d_attrs kCausalSame{{1, 1, 1}, {0, 1, 1, 0, 1, 1}};   // 3x3x3
constexpr heddle_conv3d_attrs kCausalPoint{{1, 1, 1}, {0, 0, 0, 0, 0, 0}};  // 3x1x1
constexpr heddle_conv3d_attrs kCausalHalved{{2, 1, 1}, {0, 0, 0, 0, 0, 0}};

// (O, C, 3, R, S), over a frame and the two before it.
struct CausalFilter {
  Tensor weight, bias;
  heddle_conv3d_attrs attrs = kCausalSame;
};

// Before a run a chunk's type is told as f32; what products read is in the compute type.
Tensor in_compute(Context& ctx, const Tensor& x) {
  return x.dtype() == ctx.compute() ? x : ops::cast(ctx, x, ctx.compute());
}

// A chunk of T frames behind what was kept before it: (before + T, ...). The frames are to be
// written to `chunk`.
struct Frames {
  Tensor all, chunk;
  bool is_first;  // what is before the chunk is nothing
};
Frames frames_behind(Context& ctx, const Tensor& kept, std::int64_t before, Shape shape) {
  const std::int64_t count = shape[0];
  shape[0] = before + count;
  Frames made;
  made.all = ctx.make(shape);
  made.chunk = made.all.slice(0, before, before + count);
  made.is_first = !kept;
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

Tensor with_item(const Tensor& x) {
  return x.reshape({1, x.size(0), x.size(1), x.size(2), x.size(3)});
}

// What the filter makes of the chunk (T, H, W, C) and what was before it, plus `base` where that is
// given: (T, H, W, C').
Tensor causal(Context& ctx, const Frames& frames, CausalFilter filter, heddle_dtype dtype,
              const Tensor& base = {}) {
  if (frames.is_first) filter.attrs.padding[0] = std::int32_t(filter.weight.size(2) - 1);
  const Tensor x = with_item(frames.is_first ? frames.chunk : frames.all);
  const Shape shape = ops::conv3d_shape(x, filter.weight, filter.attrs);
  const Tensor out = ctx.make(shape, dtype);
  ops::conv3d_into(ctx, x, filter.weight, filter.bias, filter.attrs,
                   base ? with_item(base) : Tensor(), out);
  return out.reshape({shape[1], shape[2], shape[3], shape[4]});
}

Tensor kept_of(Context& ctx, const Input<Tensor>& input) {
  return ctx.has(input) ? ctx[input] : Tensor();
}

}  // namespace

void WanVideoLatentIn::execute(Context& ctx) {
  const Tensor x = ops::cast(ctx, ctx[z].permute({0, 2, 3, 1}), ctx.compute());
  const Frames frames = frames_behind(ctx, kept_of(ctx, kept), 2, x.shape());
  ops::conv2d_into(ctx, x, ctx[quant], ctx[quant_bias], kVideoPoint, {}, frames.chunk);
  const CausalFilter filter{ctx[conv], ctx[conv_bias]};
  ctx[out] = causal(ctx, frames, filter, ctx.compute());
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
  const CausalFilter filter{ctx[conv], ctx[conv_bias]};
  ctx[out] = causal(ctx, frames, filter, ctx.compute());
  ctx[keeps] = last_frames(ctx, frames, 2);
}

void WanVideoResnet::execute(Context& ctx) {
  const Tensor x = in_compute(ctx, ctx[hidden]);
  const Frames before = frames_behind(ctx, kept_of(ctx, kept1), 2, x.shape());
  normed_into(ctx, x, ctx[norm1], before.chunk);
  const CausalFilter filter1{ctx[conv1], ctx[conv1_bias]};
  const Tensor middle = causal(ctx, before, filter1, ctx.compute());
  ctx[keeps1] = last_frames(ctx, before, 2);
  const Frames behind = frames_behind(ctx, kept_of(ctx, kept2), 2, middle.shape());
  normed_into(ctx, middle, ctx[norm2], behind.chunk);
  const CausalFilter filter2{ctx[conv2], ctx[conv2_bias]};
  const Tensor base =
      ctx[shortcut] ? ops::conv2d(ctx, x, ctx[shortcut], ctx[shortcut_bias], kVideoPoint) : x;
  ctx[out] = causal(ctx, behind, filter2, ctx.compute(), base);
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
  const CausalFilter filter{ctx[conv], ctx[conv_bias], kCausalPoint};
  const Tensor pairs = causal(ctx, frames, filter, ctx.compute())
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
  ctx[out] = causal(ctx, frames, {ctx[conv], ctx[conv_bias], kCausalHalved}, ctx.compute());
  ctx[keeps] = last_frames(ctx, frames, 1);
}

void WanVideoImageOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Frames frames = frames_behind(ctx, kept_of(ctx, kept), 2, x.shape());
  normed_into(ctx, x, ctx[norm], frames.chunk);
  const CausalFilter filter{ctx[conv], ctx[conv_bias]};
  ctx[image] = causal(ctx, frames, filter, HEDDLE_F32);
  ctx[keeps] = last_frames(ctx, frames, 2);
}

void WanVideoLatentOut::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Frames frames = frames_behind(ctx, kept_of(ctx, kept), 2, x.shape());
  normed_into(ctx, x, ctx[norm], frames.chunk);
  const CausalFilter filter{ctx[conv], ctx[conv_bias]};
  const Tensor last = causal(ctx, frames, filter, ctx.compute());
  const Tensor moments = ops::conv2d(ctx, last, ctx[quant], ctx[quant_bias], kVideoPoint);
  ctx[mean] =
      ops::cast(ctx, moments.slice(3, 0, moments.size(3) / 2).permute({0, 3, 1, 2}), HEDDLE_F32);
  ctx[keeps] = last_frames(ctx, frames, 2);
}

}  // namespace heddle::vae
