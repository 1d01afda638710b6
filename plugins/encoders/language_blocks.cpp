#include "language_blocks.h"

#include <cmath>
#include <limits>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "half_rotation.h"
#include "language_attention.h"
#include "language_writing_blocks.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// What scores of heads with `width` elements are multiplied by.
double score_scale(Context& ctx, std::int64_t width) {
  const double size = ctx[LanguageLayer::query_size];
  return 1 / std::sqrt(size > 0 ? size : double(width));
}

// The weight as norms multiply by it, in f32 where something is added to it.
Tensor shifted(Context& ctx, const Tensor& weight, double shift) {
  if (shift == 0 || !weight) return weight;
  const Tensor wide = weight.dtype() == HEDDLE_F32 ? weight : ops::cast(ctx, weight, HEDDLE_F32);
  return ops::scale_clamp(ctx, wide, {1, shift, -kUnlimited, kUnlimited});
}

Tensor divided(Context& ctx, const Tensor& places, double factor) {
  if (factor == 1) return places;
  return ops::scale_clamp(ctx, places, {1 / factor, 0, -kUnlimited, kUnlimited});
}

// Pairs from `turning` on do not turn; 0: all do.
void hold_still(Context& ctx, std::int64_t turning, const Tensor& cos, const Tensor& sin) {
  const std::int64_t pairs = cos.size(1);
  if (turning <= 0 || turning >= pairs) return;
  ops::fill(ctx, cos.slice(1, turning, pairs), 1);
  ops::fill(ctx, sin.slice(1, turning, pairs), 0);
}

// Queries and keys, and values where they are not among them.
struct Projected {
  Tensor qk, v;
};

Projected project(Context& ctx, const Tensor& x, std::int64_t heads, std::int64_t kv_heads) {
  using L = LanguageLayer;
  const Tensor both = blocks::wide_linear(ctx, x, ctx[L::qkv], ctx[L::qkv_bias]);
  if (const Tensor apart = ctx[L::v])
    return {both, blocks::wide_linear(ctx, x, apart, ctx[L::v_bias])};
  const std::int64_t all = both.size(2), values = all / (heads + 2 * kv_heads) * kv_heads;
  return {both.slice(2, 0, all - values), both.slice(2, all - values, all)};
}

Tensor attended(Context& ctx, const Tensor& normed, const KeptStates& kept) {
  using L = LanguageLayer;
  const std::int64_t heads = ctx[L::heads], kv_heads = ctx[L::kv_heads];
  const auto [qk, v] = project(ctx, normed, heads, kv_heads);
  const std::int64_t width = qk.size(2) / (heads + kv_heads), length = qk.size(1);
  const double shift = ctx[L::norm_shift];
  const Rotation rotation{ctx[L::cos], ctx[L::sin], ctx[L::eps], ctx[L::neighbours]};
  const Tensor q = rotated(ctx, qk.slice(2, 0, heads * width), heads,
                           shifted(ctx, ctx[L::q_norm], shift), rotation),
               k = rotated(ctx, qk.slice(2, heads * width, qk.size(2)), kv_heads,
                           shifted(ctx, ctx[L::k_norm], shift), rotation);
  const ScoreRules rules{ctx[L::window], score_scale(ctx, width), ctx[L::cap]};
  if (kept.made != nullptr) {
    const Tensor own = keys_and_values(ctx, k, v);
    ctx[*kept.made] = own;
    if (ctx.has(*kept.given))
      return attended_by_one(ctx, q, own, {ctx[*kept.given], ctx[*kept.seen], kv_heads}, rules);
  }
  return attended_before(ctx, q, k, v, ctx.has(L::unpadded) ? ctx[L::unpadded].size(0) : length,
                         rules);
}

// x + y, y normed before where the model has a norm there.
Tensor added(Context& ctx, const Tensor& x, const Tensor& y, const Weight& norm) {
  using L = LanguageLayer;
  const Tensor normed = ctx.make(y.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, y, shifted(ctx, ctx[norm], ctx[L::norm_shift]), ctx[L::eps], normed);
  return ops::add(ctx, x, normed);
}

}  // namespace

void LanguageEmbed::execute(Context& ctx) {
  Tensor rows = blocks::wide_embedding(ctx, ctx[tokens], ctx[ids]);
  const double factor = ctx[scale];
  if (factor != 1) rows = ops::scale_clamp(ctx, rows, {factor, 0, -kUnlimited, kUnlimited});
  if (ctx.has(pictures)) rows = ops::add(ctx, ops::mul(ctx, rows, ctx[is_text]), ctx[pictures]);
  ctx[out] = rows;
}

void LanguageRope::execute(Context& ctx) {
  const heddle_rope_table_attrs attrs{
      1, 0, {checked_cast<std::int32_t>(ctx[head], "head_dim"), 0, 0, 0}, ctx[theta]};
  if (!ctx.has(positions)) {
    const std::int64_t length = ctx[ids].size(1), at = ctx[padding_at];
    const Tensor places = counted_places(ctx, length);
    const std::int64_t own = ctx.has(unpadded) && at >= 0 ? ctx[unpadded].size(0) : length;
    if (own < length) ops::fill(ctx, places.slice(0, own, length), double(at));
    const Tensor grid = divided(ctx, places, ctx[factor]);
    const auto [c, s] = ops::rope_table(ctx, grid.slice(1, 0, 1), attrs);
    hold_still(ctx, ctx[turning], c, s);
    ctx[cos] = c;
    ctx[sin] = s;
    return;
  }
  const Tensor places = divided(ctx, ctx[positions], ctx[factor]);
  const std::int64_t length = places.size(0), pairs = ctx[head] / 2;
  const Tensor all_cos = ctx.make({length, pairs}, HEDDLE_F32),
               all_sin = ctx.make({length, pairs}, HEDDLE_F32);
  const std::int64_t sections[] = {ctx[section_0], ctx[section_1], ctx[section_2]};
  std::int64_t begin = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t end = begin + sections[axis];
    if (end == begin) continue;
    const auto [c, s] = ops::rope_table(ctx, places.slice(1, axis, axis + 1), attrs);
    if (ctx[interleaved]) {
      // Those of the time are all at first.
      const auto of_axis = [&](const Tensor& x) {
        if (axis == 0) return x;
        return x.slice(1, 0, 3 * sections[axis])
            .reshape({length, sections[axis], 3})
            .slice(2, axis, axis + 1);
      };
      ops::copy_into(ctx, of_axis(c), of_axis(all_cos));
      ops::copy_into(ctx, of_axis(s), of_axis(all_sin));
      continue;
    }
    ops::copy_into(ctx, c.slice(1, begin, end), all_cos.slice(1, begin, end));
    ops::copy_into(ctx, s.slice(1, begin, end), all_sin.slice(1, begin, end));
    begin = end;
  }
  hold_still(ctx, ctx[turning], all_cos, all_sin);
  ctx[cos] = all_cos;
  ctx[sin] = all_sin;
}

void run_language_layer(Context& ctx, const KeptStates& kept) {
  using L = LanguageLayer;
  const Tensor x = ctx[L::hidden];
  const double shift = ctx[L::norm_shift], epsilon = ctx[L::eps];
  const Tensor seen =
      attended(ctx, ops::rms_norm(ctx, x, shifted(ctx, ctx[L::norm1], shift), epsilon), kept);
  const bool is_normed = bool(ctx[L::after1]);
  const Tensor projected =
      blocks::wide_linear(ctx, seen, ctx[L::proj], {}, HEDDLE_ACT_NONE, is_normed ? Tensor() : x);
  const Tensor middle = is_normed ? added(ctx, x, projected, L::after1) : projected;
  const Tensor again = ops::rms_norm(ctx, middle, shifted(ctx, ctx[L::norm2], shift), epsilon);
  const Tensor both = blocks::wide_linear(ctx, again, ctx[L::up], {});
  const std::int64_t width = both.size(2) / 2;
  const Tensor raised = ctx.make({both.size(0), both.size(1), width});
  ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             heddle_activation(ctx[L::activation]), raised);
  const bool is_normed_again = bool(ctx[L::after2]);
  const Tensor lowered = blocks::wide_linear(ctx, raised, ctx[L::down], {}, HEDDLE_ACT_NONE,
                                             is_normed_again ? Tensor() : middle);
  const Tensor last = is_normed_again ? added(ctx, middle, lowered, L::after2) : lowered;
  if (!ctx.has(L::deep)) {
    ctx[L::out] = last;
    return;
  }
  const std::int64_t row = ctx[L::deep_row];
  if (row >= ctx[L::deep].size(0))
    throw Error(HEDDLE_INVALID_ARGUMENT, "pictures are seen at " +
                                             std::to_string(ctx[L::deep].size(0)) +
                                             " depths, the language model reads them at " +
                                             std::to_string(row + 1) + " at least");
  ctx[L::out] = ops::add(ctx, last, ctx[L::deep].slice(0, row, row + 1));
}

void LanguageLayer::execute(Context& ctx) { run_language_layer(ctx, {}); }

void LanguageKeptLayer::execute(Context& ctx) {
  run_language_layer(ctx, {&kept, &seen, &kept_out});
}

void LanguageLogits::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t length = x.size(1);
  const Tensor normed = ops::rms_norm(ctx, ops::contiguous(ctx, x.slice(1, length - 1, length)),
                                      shifted(ctx, ctx[norm], ctx[norm_shift]), ctx[eps]);
  const Tensor made = blocks::wide_linear(ctx, normed, ctx[matrix], {});
  ctx[out] = made.reshape({made.size(0), made.size(2)});
}

void LanguageFinish::execute(Context& ctx) {
  const Tensor x = ctx[hidden], normed = ctx.make(x.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, x, shifted(ctx, ctx[norm], ctx[norm_shift]), ctx[eps], normed);
  ctx[out] = normed;
}

void LanguageJoin::execute(Context& ctx) {
  std::vector<Tensor> given;
  for (const Input<Tensor>& state : states)
    if (ctx.has(state)) given.push_back(ctx[state]);
  const Tensor& one = given.front();
  std::int64_t width = 0, begin = 0;
  for (const Tensor& state : given) width += state.size(2);
  const Tensor joined = ctx.make({one.size(0), one.size(1), width}, HEDDLE_F32);
  for (const Tensor& state : given) {
    ops::copy_into(ctx, state, joined.slice(2, begin, begin + state.size(2)));
    begin += state.size(2);
  }
  ctx[out] = joined;
}

}  // namespace heddle::encoders
