#include "ltxv_filter.h"

#include <algorithm>
#include <limits>
#include <string>

#include <heddle/frame_ops.hpp>

namespace heddle::vae {
namespace {

constexpr std::int64_t kLtxvTaps = 3;

// x (T, H, W, C) into wide (T, H + b + 1, W + b + 1, C), behind the first b rows and columns, 1 or
// none. Rows and columns around it are those next to its edges, mirrored.
void mirror_edges(Context& ctx, const Tensor& x, std::int64_t before, const Tensor& wide) {
  const std::int64_t height = x.size(1), width = x.size(2);
  const Tensor rows = wide.slice(2, before, width + before);
  ops::copy_into(ctx, x, rows.slice(1, before, height + before));
  // A single row or column mirrors itself.
  const auto mirror = [&](const Tensor& of, std::uint32_t axis, std::int64_t size) {
    const auto put = [&](std::int64_t from, std::int64_t to) {
      ops::copy_into(ctx, of.slice(axis, from, from + 1), of.slice(axis, to, to + 1));
    };
    if (before > 0) put(std::min<std::int64_t>(2, size), 0);
    put(before + std::max<std::int64_t>(0, size - 2), size + before);
  };
  mirror(rows, 1, height);
  mirror(wide, 2, width);
}

// How far apart the frames are that a filter is put to.
std::int64_t frame_step(const LtxvFilter& filter) {
  return filter.frame_stride > 0 ? filter.frame_stride : filter.stride;
}

// One video under a filter: out and base are (T', H', W', C').
class LtxvClip {
 public:
  LtxvClip(Context& ctx, const Tensor& x, const LtxvFilter& filter, const Tensor& base,
           const Tensor& out)
      : ctx_(ctx), x_(x), filter_(filter), base_(base), out_(out) {
    const auto step = std::int32_t(filter.stride), edge = std::int32_t(filter.mirrors ? 0 : 1);
    attrs_ = {{std::int32_t(frame_step(filter)), step, step}, {0, edge, edge, 0, edge, edge}};
  }

  // Frames whose neighbours are all there are read where they lie; of the others, and where edges
  // are mirrored, what they read is copied together, some frames at a time.
  void convolve() {
    constexpr std::int64_t kTogether = 4;
    const std::int64_t frames = out_.size(0);
    for (std::int64_t t = 0, end = 0; t < frames; t = end) {
      end = t + 1;
      if (!filter_.mirrors && is_inside(t)) {
        while (end < frames && is_inside(end)) ++end;
        convolve_into(x_.slice(0, first_of(t), first_of(end - 1) + kLtxvTaps), t, end);
        continue;
      }
      while (end < frames && end < t + kTogether && (filter_.mirrors || !is_inside(end))) ++end;
      convolve_into(put_together(t, end), t, end);
    }
  }

 private:
  // The frame that is first read for frame t.
  std::int64_t first_of(std::int64_t t) const {
    if (filter_.has_neighbours) return t * frame_step(filter_);
    return t * frame_step(filter_) - (filter_.is_causal ? kLtxvTaps - 1 : 1);
  }
  bool is_inside(std::int64_t t) const {
    return first_of(t) >= 0 && first_of(t) + kLtxvTaps <= x_.size(0);
  }

  // Frames of zeros before the first one are left to the convolution.
  Tensor put_together(std::int64_t begin, std::int64_t end) {
    const std::int64_t first = filter_.begins_empty ? std::max<std::int64_t>(0, first_of(begin))
                                                    : first_of(begin),
                       count = first_of(end - 1) + kLtxvTaps - first,
                       before = filter_.reads_on_behind ? 0 : 1,
                       edges = filter_.mirrors ? before + 1 : 0;
    const Tensor made =
        ctx_.make({count, x_.size(1) + edges, x_.size(2) + edges, x_.size(3)}, x_.dtype());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = std::clamp<std::int64_t>(first + i, 0, x_.size(0) - 1);
      const Tensor from = x_.slice(0, at, at + 1), to = made.slice(0, i, i + 1);
      if (filter_.mirrors)
        mirror_edges(ctx_, from, before, to);
      else
        ops::copy_into(ctx_, from, to);
    }
    return made;
  }

  void convolve_into(const Tensor& seen, std::int64_t begin, std::int64_t end) {
    const auto item = [](const Tensor& of) {
      return of.reshape({1, of.size(0), of.size(1), of.size(2), of.size(3)});
    };
    heddle_conv3d_attrs attrs = attrs_;
    if (filter_.begins_empty)
      attrs.padding[0] = std::int32_t(std::max<std::int64_t>(0, -first_of(begin)));
    ops::conv3d_into(ctx_, item(seen), filter_.weight, filter_.bias, attrs,
                     base_ ? item(base_.slice(0, begin, end)) : Tensor(),
                     item(out_.slice(0, begin, end)));
  }

  Context& ctx_;
  const Tensor x_;
  const LtxvFilter& filter_;
  const Tensor base_, out_;
  heddle_conv3d_attrs attrs_{};
};

}  // namespace

Tensor ltxv_convolved(Context& ctx, const Tensor& x, const LtxvFilter& filter, heddle_dtype dtype,
                      const Tensor& base) {
  const auto made_of = [](std::int64_t size, std::int64_t step) { return (size - 1) / step + 1; };
  const std::int64_t count = x.size(1) - (filter.has_neighbours ? kLtxvTaps - 1 : 0);
  if (count < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a piece of " + std::to_string(x.size(1)) +
                    " frames with their neighbours is too short for a filter of " +
                    std::to_string(kLtxvTaps));
  const std::int64_t frames = made_of(count, frame_step(filter)),
                     height = made_of(x.size(2), filter.stride),
                     width = made_of(x.size(3), filter.stride), channels = filter.weight.size(0);
  const Tensor out = ctx.make({x.size(0), frames, height, width, channels}, dtype);
  const auto item = [](const Tensor& of, std::int64_t i) {
    return of.slice(0, i, i + 1).reshape({of.size(1), of.size(2), of.size(3), of.size(4)});
  };
  for (std::int64_t i = 0; i < x.size(0); ++i)
    LtxvClip(ctx, item(x, i), filter, base ? item(base, i) : Tensor(), item(out, i)).convolve();
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
