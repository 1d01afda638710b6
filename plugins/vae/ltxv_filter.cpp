#include "ltxv_filter.h"

#include <algorithm>
#include <limits>
#include <map>

#include <heddle/ops.hpp>

namespace heddle::vae {
namespace {

// Rows and columns that a filter reads beyond a frame: those next to its edges, mirrored. x (1, H,
// W, C) -> (1, H + b + 1, W + b + 1, C), b 1, or 0 where it reads nothing before the first ones.
Tensor with_mirrored_edges(Context& ctx, const Tensor& x, std::int64_t before) {
  const std::int64_t height = x.size(1), width = x.size(2);
  const Tensor wide = ctx.make({1, height + before + 1, width + before + 1, x.size(3)}, x.dtype());
  const Tensor rows = wide.slice(2, before, width + before);
  ops::copy_into(ctx, x, rows.slice(1, before, height + before));
  // A single row or column mirrors itself.
  const auto mirror = [&](const Tensor& of, int axis, std::int64_t size) {
    const auto put = [&](std::int64_t from, std::int64_t to) {
      ops::copy_into(ctx, of.slice(axis, from, from + 1), of.slice(axis, to, to + 1));
    };
    if (before > 0) put(std::min<std::int64_t>(2, size), 0);
    put(before + std::max<std::int64_t>(0, size - 2), size + before);
  };
  mirror(rows, 1, height);
  mirror(wide, 2, width);
  return wide;
}

// The frames of x (T, H, W, C) as a filter reads them, each made once while it is needed.
class SeenFrames {
 public:
  SeenFrames(Context& ctx, const Tensor& x, const LtxvFilter& filter)
      : ctx_(ctx), x_(x), mirrors_(filter.mirrors), before_(filter.reads_on_behind ? 0 : 1) {}

  // Frames before `at` are not asked for again.
  Tensor from(std::int64_t at, std::int64_t behind) {
    const std::int64_t last = x_.size(0) - 1;
    const std::int64_t frame = std::clamp<std::int64_t>(at + behind, 0, last);
    if (!mirrors_) return x_.slice(0, frame, frame + 1);
    made_.erase(made_.begin(), made_.lower_bound(std::clamp<std::int64_t>(at, 0, last)));
    if (const auto found = made_.find(frame); found != made_.end()) return found->second;
    return made_.emplace(frame, with_mirrored_edges(ctx_, x_.slice(0, frame, frame + 1), before_))
        .first->second;
  }

 private:
  Context& ctx_;
  Tensor x_;
  bool mirrors_;
  std::int64_t before_;
  std::map<std::int64_t, Tensor> made_;
};

// One frame, by the filter whose first part reads the frame `at`, plus `base` where that is given.
// A frame at a time, so that sums take little room.
void convolve_frame(Context& ctx, SeenFrames& frames, std::int64_t at, const LtxvFilter& filter,
                    const Tensor& base, const Tensor& out) {
  const auto step = std::int32_t(filter.stride);
  const std::int32_t edge = filter.mirrors ? 0 : 1;
  const heddle_conv2d_attrs attrs{{step, step}, {edge, edge, edge, edge}};
  Tensor sum = base;
  if (sum && sum.dtype() != HEDDLE_F32) sum = ops::cast(ctx, sum, HEDDLE_F32);
  const Tensor* const parts[] = {&filter.first, &filter.second, &filter.third};
  for (std::int64_t i = 0; i < 3; ++i) {
    if (filter.begins_empty && at + i < 0) continue;  // zeros add nothing
    const Tensor seen = frames.from(at, i);
    const bool is_last = i == 2;
    const Tensor made = is_last && out.dtype() == HEDDLE_F32
                            ? out
                            : ctx.make(ops::conv2d_shape(seen, *parts[i], attrs), HEDDLE_F32);
    ops::conv2d_into(ctx, seen, *parts[i], is_last ? filter.bias : Tensor(), attrs, sum, made);
    sum = made;
  }
  if (out.dtype() != HEDDLE_F32) ops::copy_into(ctx, sum, out);
}

}  // namespace

Tensor ltxv_convolved(Context& ctx, const Tensor& x, const LtxvFilter& filter, heddle_dtype dtype,
                      const Tensor& base) {
  const auto made_of = [](std::int64_t size, std::int64_t stride) {
    return (size - 1) / stride + 1;
  };
  const std::int64_t step = filter.frame_stride > 0 ? filter.frame_stride : filter.stride,
                     frames = made_of(x.size(1), step), height = made_of(x.size(2), filter.stride),
                     width = made_of(x.size(3), filter.stride), channels = filter.third.size(0);
  const Tensor out = ctx.make({x.size(0), frames, height, width, channels}, dtype);
  const auto item = [](const Tensor& of, std::int64_t i) {
    return of.slice(0, i, i + 1).reshape({of.size(1), of.size(2), of.size(3), of.size(4)});
  };
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    SeenFrames seen(ctx, item(x, i), filter);
    const Tensor to = item(out, i), beside = base ? item(base, i) : Tensor();
    for (std::int64_t t = 0; t < frames; ++t)
      convolve_frame(ctx, seen, t * step - (filter.is_causal ? 2 : 1), filter,
                     beside ? beside.slice(0, t, t + 1) : Tensor(), to.slice(0, t, t + 1));
  }
  return out;
}

LtxvModulation ltxv_modulation(Context& ctx, const Tensor& embedding, const Tensor& table,
                               std::int64_t nth) {
  constexpr double kUnbound = std::numeric_limits<double>::infinity();
  if (!embedding) return {};
  const std::int64_t channels = table.size(1);
  const auto number = [&](std::int64_t row) {
    const Tensor sum = ctx.make({channels}, HEDDLE_F32);
    ops::add_into(ctx, embedding.slice(0, row * channels, (row + 1) * channels),
                  table.slice(0, row, row + 1).reshape({channels}), sum);
    return sum;
  };
  const Tensor scale = number(2 * nth + 1);
  return {ops::scale_clamp(ctx, scale, {1, 1, -kUnbound, kUnbound}), number(2 * nth)};
}

Tensor ltxv_activated(Context& ctx, const Tensor& x, double eps, const LtxvModulation& by) {
  const Tensor out = ctx.make(x.shape());
  ops::rms_norm_into(ctx, x, by.factor, eps, out);
  if (by.shift) ops::add_into(ctx, out, by.shift.reshape({1, 1, 1, 1, by.shift.count()}), out);
  ops::activate_into(ctx, out, HEDDLE_ACT_SILU, out);
  return out;
}

}  // namespace heddle::vae
