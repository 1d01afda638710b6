#include "ltxv_guides.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <heddle/ops.hpp>

namespace heddle::denoisers {
namespace {

// Queries of guides whose weights are written out at a time, each with a row for all keys.
constexpr std::int64_t kGuideRows = 256;

// The last axis of x as the queries' one, too: each of `count` rows is the same, without copying.
Tensor repeated_row(const Tensor& x, std::int64_t count) {
  heddle_tensor_info rows = x.info();
  rows.shape[2] = count;
  rows.stride[2] = 0;
  return x.view(rows, 0);
}

}  // namespace

GuideInputs guide_inputs(Blocks& graph) {
  const auto input = [&](const char* name) {
    return graph.input(name, HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL);
  };
  return {input("guide_frames"), input("token_rows"), input("token_places"),
          input("guide_weights")};
}

void put_guides(Context& ctx, const Tensor& guides, const Tensor& ids, std::int64_t frames,
                bool in_middle) {
  const std::int64_t count = guides.size(0), each = ids.size(0) / frames;
  if (count > frames)
    throw Error(HEDDLE_INVALID_ARGUMENT, "the conditioning tells of " + std::to_string(count) +
                                             " frames of guides, the latent has " +
                                             std::to_string(frames) +
                                             " in all. Link the latent of LTXVAddGuide.");
  const auto column = [&](int n) { return ops::contiguous(ctx, guides.slice(1, n, n + 1)); };
  const Tensor begins = column(0), ends = column(1);
  const Tensor places = in_middle ? ops::combine(ctx, {{0.5, begins}, {0.5, ends}}) : begins;
  // Half of the rows and columns behind a token's first ones.
  constexpr double kUnbound = std::numeric_limits<double>::infinity();
  const Tensor behind = in_middle && guides.size(1) > 2
                            ? ops::scale_clamp(ctx, column(2), {0.5, -0.5, -kUnbound, kUnbound})
                            : Tensor();
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t first = (frames - count + k) * each;
    const Tensor here = ids.slice(0, first, first + each), at = here.slice(1, 0, 1);
    ops::fill(ctx, at, 0);
    ops::add_into(ctx, at, places.slice(0, k, k + 1), at);
    if (!behind) continue;
    const Tensor cells = here.slice(1, 1, 3);
    ops::add_into(ctx, cells, behind.slice(0, k, k + 1), cells);
  }
}

Tensor chosen_rows(Context& ctx, const Tensor& x, const Tensor& rows) {
  if (x.rank() == 2) {
    const Tensor made = ctx.make({rows.size(0), x.size(1)}, x.dtype());
    ops::embedding_into(ctx, x, rows, made);
    return made;
  }
  const std::int64_t items = x.size(0), count = rows.size(0), width = x.size(2);
  const Tensor made = ctx.make({items, count, width}, x.dtype());
  for (std::int64_t i = 0; i < items; ++i)
    ops::embedding_into(ctx, x.slice(0, i, i + 1).reshape({x.size(1), width}), rows,
                        made.slice(0, i, i + 1).reshape({count, width}));
  return made;
}

Tensor rows_or_zeros(Context& ctx, const Tensor& x, const Tensor& rows) {
  const std::int64_t items = x.size(0), count = x.size(1);
  const Tensor padded = ctx.make({items, count + 1, x.size(2)}, x.dtype());
  ops::copy_into(ctx, x, padded.slice(1, 0, count));
  ops::fill(ctx, padded.slice(1, count, count + 1), 0);
  return chosen_rows(ctx, padded, rows);
}

GuidedAttention::GuidedAttention(Context& ctx, const Tensor& weights, std::int64_t tokens)
    : ctx_(ctx),
      weights_(weights),
      tokens_(tokens),
      own_(weights ? tokens - weights.size(0) : tokens) {
  if (!weights) return;
  if (own_ < 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning tells of the weights of " + std::to_string(weights.size(0)) +
                    " tokens of guides, the latent has " + std::to_string(tokens) +
                    " in all. Link the latent of LTXVAddGuide.");
  seen_by_others_ = ctx.make({1, 1, 1, tokens}, HEDDLE_F32);
  ops::fill(ctx, seen_by_others_, 0);
  ops::copy_into(ctx, weights.reshape({1, 1, 1, weights.size(0)}),
                 seen_by_others_.slice(3, own_, tokens));
}

// Of guides' tokens [begin, end): what each sees of the others.
Tensor GuidedAttention::bias_of_guides(std::int64_t begin, std::int64_t end) const {
  const Tensor bias = ctx_.make({1, 1, end - begin, tokens_}, HEDDLE_F32);
  ops::fill(ctx_, bias, 0);
  if (own_ == 0) return bias;
  const Tensor others = bias.slice(3, 0, own_);
  ops::add_into(ctx_, others, weights_.slice(0, begin, end).reshape({1, 1, end - begin, 1}),
                others);
  return bias;
}

void GuidedAttention::into(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t first,
                           const Tensor& out) const {
  const double scale = 1 / std::sqrt(double(q.size(3)));
  const std::int64_t count = q.size(1), others = std::clamp(own_ - first, std::int64_t{0}, count);
  const auto see = [&](std::int64_t begin, std::int64_t end, const Tensor& bias) {
    ops::attention_into(ctx_, q.slice(1, begin, end), k, v, bias, scale, ops::Mask::none,
                        out.slice(1, begin, end));
  };
  if (!weights_) return see(0, count, {});
  if (others > 0) see(0, others, repeated_row(seen_by_others_, others));
  for (std::int64_t begin = others; begin < count; begin += kGuideRows) {
    const std::int64_t end = std::min(begin + kGuideRows, count);
    see(begin, end, bias_of_guides(first + begin - own_, first + end - own_));
  }
}

}  // namespace heddle::denoisers
