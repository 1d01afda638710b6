#include "wan_speakers.h"

#include <cmath>
#include <limits>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "joint_attention.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kSpeakers = 2;
// Two looks that differ at all differ by more than 1 over this.
constexpr double kAnyDifference = 1e38, kLeastRange = 1e-8,
                 kUnboundedPlace = std::numeric_limits<double>::infinity();

// rows (R, n, m) -> (R, 1, m): pair(a, b, to) makes of two rows one, until there is one.
template <class Pair>
Tensor folded(Context& ctx, Tensor rows, Pair&& pair) {
  for (std::int64_t count = rows.size(1); count > 1; count = rows.size(1)) {
    const std::int64_t half = count / 2, rest = count % 2;
    const Tensor next = ctx.make({rows.size(0), half + rest, rows.size(2)}, HEDDLE_F32);
    pair(rows.slice(1, 0, half), rows.slice(1, half, 2 * half), next.slice(1, 0, half));
    if (rest > 0)
      ops::copy_into(ctx, rows.slice(1, count - 1, count), next.slice(1, half, half + 1));
    rows = next;
  }
  return rows;
}

// How much each token looks at a token of either region, by the mean of all heads: (2, L) f32.
Tensor looks(Context& ctx, const Tensor& own, const Tensor& marks, const Tensor& shares,
             std::int64_t heads) {
  const std::int64_t length = own.size(1);
  const Tensor q = part_of_heads(own, 0, heads),
               k = tokens(part_of_heads(own, 1, heads), {0, marks.size(1)}),
               seen = ops::attention(ctx, q, k, blocks::split_heads(marks, heads), {},
                                     1 / std::sqrt(double(q.size(3))));
  const Tensor by_head = ctx.make({kSpeakers, heads, length}, HEDDLE_F32);
  ops::copy_into(ctx, seen.slice(3, 0, kSpeakers).permute({3, 2, 1, 0}),
                 by_head.reshape({kSpeakers, heads, length, 1}));
  const Tensor sum = folded(ctx, by_head, [&](const Tensor& a, const Tensor& b, const Tensor& to) {
                       ops::add_into(ctx, a, b, to);
                     }).reshape({kSpeakers, length});
  const Tensor mean = ctx.make(sum.shape(), HEDDLE_F32);
  ops::mul_into(ctx, sum, shares, mean);
  return ops::combine(ctx, {{1 / double(heads), mean}});
}

// The least, with the other sign, and the most of each row: both (2, 1) f32.
std::pair<Tensor, Tensor> ends(Context& ctx, const Tensor& rows) {
  const std::int64_t length = rows.size(1);
  const Tensor both = ctx.make({2 * kSpeakers, length, 1}, HEDDLE_F32);
  const Tensor flat = both.reshape({2 * kSpeakers, length});
  ops::copy_into(ctx, rows, flat.slice(0, 0, kSpeakers));
  ops::combine_into(ctx, {{-1, rows}}, flat.slice(0, kSpeakers, 2 * kSpeakers));
  const Tensor most = folded(ctx, both, [&](const Tensor& a, const Tensor& b, const Tensor& to) {
                        const Tensor more = ctx.make(a.shape(), HEDDLE_F32);
                        ops::combine_into(ctx, {{1, b}, {-1, a}}, more);
                        ops::activate_into(ctx, more, HEDDLE_ACT_RELU, more);
                        ops::add_into(ctx, a, more, to);
                      }).reshape({2 * kSpeakers, 1});
  return {most.slice(0, kSpeakers, 2 * kSpeakers), most.slice(0, 0, kSpeakers)};
}

}  // namespace

std::pair<Tensor, Tensor> speaker_table(Context& ctx, const Tensor& places, std::int64_t head) {
  constexpr double kTheta = 10000;
  return ops::rope_table(
      ctx, places,
      heddle_rope_table_attrs{
          1, 0, {checked_cast<std::int32_t>(head, "the heads' width"), 0, 0, 0}, kTheta});
}

Tensor speaker_places(Context& ctx, const Tensor& own, const Tensor& marks, const Tensor& shares,
                      std::int64_t heads) {
  const Tensor seen = looks(ctx, own, marks, shares, heads);
  const auto [least, most] = ends(ctx, seen);
  const Tensor range = ops::scale_clamp(ctx, ops::add(ctx, most, least),
                                        {1, kLeastRange, kLeastRange, kUnboundedPlace}),
               size = ops::rsqrt(ctx, ops::mul(ctx, range, range)),
               within = ops::mul(ctx, ops::add(ctx, seen, least), size);
  const auto row = [](const Tensor& of, std::int64_t n) { return of.slice(0, n, n + 1); };
  // 0 at the first speaker's tokens, 1 at the second's.
  const Tensor second = ctx.make({1, seen.size(1)}, HEDDLE_F32);
  ops::combine_into(ctx, {{1, row(seen, 1)}, {-1, row(seen, 0)}}, second);
  ops::scale_clamp_into(ctx, second, {kAnyDifference, 0, 0, 1}, second);
  const Tensor apart = ctx.make(second.shape(), HEDDLE_F32);
  ops::combine_into(ctx, {{kSpeakerSpan, row(within, 1)}, {-kSpeakerSpan, row(within, 0)}}, apart);
  ops::scale_clamp_into(ctx, apart, {1, kSecondSpeaker, -kUnboundedPlace, kUnboundedPlace}, apart);
  const Tensor added = ops::mul(ctx, apart, second), places = ctx.make(second.shape(), HEDDLE_F32);
  ops::combine_into(ctx, {{kSpeakerSpan, row(within, 0)}, {1, added}}, places);
  return places.reshape({seen.size(1), 1});
}

}  // namespace heddle::denoisers
