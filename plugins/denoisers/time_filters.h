// plugins/denoisers/time_filters.h - filters over time that look back, of what moves with a video:
// a face (wan_animate_blocks.h), a sound (wan_sound_blocks.h). A filter is a matrix for each of its
// three taps, which read a state and the two before it; before the first stands that one. Letters:
// B batch, S states, C their numbers. Used in blocks, as they are traced; any thread.
#pragma once

#include <algorithm>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::denoisers {

inline constexpr std::int64_t kTimeFilterTaps = 3;

// The matrices and the bias of one.
struct TimeFilter {
  const Weight* taps;
  const Weight& bias;
};

// x (B, S, C), of which every `step`th state is read with the two before it -> (B, (S - 1) / step +
// 1, C') f32.
inline Tensor filter_time(Context& ctx, const Tensor& x, std::int64_t step,
                          const TimeFilter& filter) {
  const std::int64_t items = x.size(0), frames = x.size(1), width = x.size(2),
                     before = kTimeFilterTaps - 1, made = (frames - 1) / step + 1;
  // As many as whole steps read.
  const std::int64_t room = (made + before / step) * step;
  const Tensor padded = ctx.make({items, std::max(room, frames + before), width});
  for (std::int64_t i = 0; i < before; ++i)
    ops::copy_into(ctx, x.slice(1, 0, 1), padded.slice(1, i, i + 1));
  ops::copy_into(ctx, x, padded.slice(1, before, before + frames));
  Tensor sum;
  for (std::int64_t tap = 0; tap < kTimeFilterTaps; ++tap) {
    const std::int64_t from = tap / step, part = tap % step;
    const Tensor read = padded.slice(1, 0, room)
                            .reshape({items, room / step, step, width})
                            .slice(1, from, from + made)
                            .slice(2, part, part + 1);
    const Tensor rows = ops::contiguous(ctx, read).reshape({items, made, width});
    sum = blocks::wide_linear(ctx, rows, ctx[filter.taps[tap]],
                              tap == 0 ? ctx[filter.bias] : Tensor(), HEDDLE_ACT_NONE, sum);
  }
  return sum;
}

// A norm without weights, and SiLU: in the compute type, rounded once.
inline Tensor normed_silu(Context& ctx, const Tensor& x, double eps) {
  const Tensor normed = ctx.make(x.shape(), HEDDLE_F32), made = ctx.make(x.shape());
  ops::layer_norm_into(ctx, x, {}, {}, eps, normed);
  ops::activate_into(ctx, normed, HEDDLE_ACT_SILU, made);
  return made;
}

// x (B, S, C) by three filters, the later two of which make one state of two: (B, parts, F, D) in
// the compute type, F = S / 4, rounded up. The first gives `parts` times the numbers that the
// second reads: from there on each part goes its own way.
inline Tensor filter_in_parts(Context& ctx, const Tensor& x, std::int64_t parts, double eps,
                              const TimeFilter& first, const TimeFilter& second,
                              const TimeFilter& third) {
  const Tensor apart = filter_time(ctx, x, 1, first);
  const std::int64_t items = x.size(0), given = apart.size(1), inner = apart.size(2) / parts;
  const Tensor normed = normed_silu(ctx, apart.reshape({items, given, parts, inner}), eps);
  const Tensor by_part = ops::contiguous(ctx, normed.permute({0, 2, 1, 3}));
  const Tensor half = normed_silu(
      ctx, filter_time(ctx, by_part.reshape({items * parts, given, inner}), 2, second), eps);
  const Tensor quarter = normed_silu(ctx, filter_time(ctx, half, 2, third), eps);
  return quarter.reshape({items, parts, quarter.size(1), quarter.size(2)});
}

// Puts made (B, parts, F', D) before `token` (D) in each of the first F' frames of to (B, F, parts
// + 1, D).
inline void join_parts(Context& ctx, const Tensor& made, const Tensor& token, const Tensor& to) {
  const std::int64_t items = made.size(0), parts = made.size(1), frames = made.size(2),
                     width = made.size(3);
  ops::copy_into(ctx, made.permute({0, 2, 1, 3}), to.slice(1, 0, frames).slice(2, 0, parts));
  for (std::int64_t item = 0; item < items; ++item)
    for (std::int64_t frame = 0; frame < frames; ++frame)
      ops::copy_into(
          ctx, token.reshape({1, 1, 1, width}),
          to.slice(0, item, item + 1).slice(1, frame, frame + 1).slice(2, parts, parts + 1));
}

}  // namespace heddle::denoisers
