#include "language_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "half_rotation.h"
#include "language_attention.h"
#include "language_writing_blocks.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// What scores of heads with `width` elements are multiplied by.
double score_scale(Context& ctx, std::int64_t width) {
  const double size = ctx[LanguageLayer::query_size];
  return 1 / std::sqrt(size > 0 ? size : double(width));
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

// (S, n) with `more` columns of `value` behind them.
Tensor widened(Context& ctx, const Tensor& table, std::int64_t more, double value) {
  if (more == 0) return table;
  const std::int64_t width = table.size(1);
  const Tensor all = ctx.make({table.size(0), width + more}, HEDDLE_F32);
  ops::copy_into(ctx, table, all.slice(1, 0, width));
  ops::fill(ctx, all.slice(1, width, width + more), value);
  return all;
}

// Of (S, n) the columns that turn with an axis where three of them take turns, `count` of them; all
// with the time, which comes first and is overwritten by the others.
void copy_turns(Context& ctx, const Tensor& from, const Tensor& to, int axis, std::int64_t count) {
  if (axis == 0) return ops::copy_into(ctx, from, to);
  const std::int64_t length = from.size(0), width = from.size(1),
                     whole = std::min(count, width / 3);
  const auto turns = [&](const Tensor& x) {
    return x.slice(1, 0, 3 * whole).reshape({length, whole, 3}).slice(2, axis, axis + 1);
  };
  ops::copy_into(ctx, turns(from), turns(to));
  // The last three may not be whole.
  for (std::int64_t i = whole; i < count; ++i) {
    const std::int64_t at = 3 * i + axis;
    ops::copy_into(ctx, from.slice(1, at, at + 1), to.slice(1, at, at + 1));
  }
}

// By heads (B, S, n, d), but values (B, S, K d). gates: empty where the model has none.
struct Projected {
  Tensor q, k, v, gates;
};

Projected project(Context& ctx, const Tensor& x, std::int64_t heads, std::int64_t kv_heads) {
  using L = LanguageLayer;
  const Tensor both = blocks::wide_linear(ctx, x, ctx[L::qkv], ctx[L::qkv_bias]), apart = ctx[L::v];
  const bool gates = ctx[L::gates_results];
  const std::int64_t parts = gates ? 2 : 1, all = both.size(2),
                     width = all / (parts * heads + (apart ? 1 : 2) * kv_heads),
                     keys_at = parts * heads * width, values_at = keys_at + kv_heads * width;
  const Tensor queries = blocks::split_heads(both.slice(2, 0, keys_at), heads);
  return {
      gates ? queries.slice(3, 0, width) : queries,
      blocks::split_heads(both.slice(2, keys_at, values_at), kv_heads),
      apart ? blocks::wide_linear(ctx, x, apart, ctx[L::v_bias]) : both.slice(2, values_at, all),
      gates ? queries.slice(3, width, 2 * width) : Tensor()};
}

// seen (B, S, H d) times 1 / (1 + exp(-gates)), of gates (B, S, H, d) f32.
Tensor gated(Context& ctx, const Tensor& seen, const Tensor& gates) {
  if (!gates) return seen;
  const Tensor halves = ops::scale_clamp(ctx, gates, {0.5, 0, -kUnlimited, kUnlimited});
  ops::activate_into(ctx, halves, HEDDLE_ACT_TANH, halves);
  ops::scale_clamp_into(ctx, halves, {0.5, 0.5, -kUnlimited, kUnlimited}, halves);
  const Tensor out = ctx.make(seen.shape());
  ops::mul_into(ctx, seen, halves.reshape(seen.shape()), out);
  return out;
}

Tensor attended(Context& ctx, const Projected& x, const KeptStates& kept) {
  using L = LanguageLayer;
  const std::int64_t kv_heads = ctx[L::kv_heads], width = x.q.size(3), length = x.q.size(1);
  const double shift = ctx[L::norm_shift];
  const Rotation rotation{ctx[L::cos], ctx[L::sin], ctx[L::eps], ctx[L::neighbours],
                          ctx[L::turned]};
  const Tensor &v = x.v, q = rotated(ctx, x.q, shifted(ctx, ctx[L::q_norm], shift), rotation),
               k = rotated(ctx, x.k, shifted(ctx, ctx[L::k_norm], shift), rotation);
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

Tensor shifted(Context& ctx, const Tensor& weight, double shift) {
  if (shift == 0 || !weight) return weight;
  const Tensor wide = weight.dtype() == HEDDLE_F32 ? weight : ops::cast(ctx, weight, HEDDLE_F32);
  return ops::scale_clamp(ctx, wide, {1, shift, -kUnlimited, kUnlimited});
}

void LanguageEmbed::execute(Context& ctx) {
  Tensor rows = blocks::wide_embedding(ctx, ctx[tokens], ctx[ids]);
  const double factor = ctx[scale];
  if (factor != 1) rows = ops::scale_clamp(ctx, rows, {factor, 0, -kUnlimited, kUnlimited});
  if (ctx.has(pictures)) rows = ops::add(ctx, ops::mul(ctx, rows, ctx[is_text]), ctx[pictures]);
  ctx[out] = rows;
}

void LanguageRope::execute(Context& ctx) {
  const std::int64_t pairs = ctx[head] / 2, still = ctx[still_pairs];
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
    ctx[cos] = widened(ctx, c, still, 1);
    ctx[sin] = widened(ctx, s, still, 0);
    return;
  }
  const Tensor places = divided(ctx, ctx[positions], ctx[factor]);
  const std::int64_t length = places.size(0);
  const Tensor all_cos = ctx.make({length, pairs}, HEDDLE_F32),
               all_sin = ctx.make({length, pairs}, HEDDLE_F32);
  const std::int64_t sections[] = {ctx[section_0], ctx[section_1], ctx[section_2]};
  std::int64_t begin = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t end = begin + sections[axis];
    if (end == begin) continue;
    const auto [c, s] = ops::rope_table(ctx, places.slice(1, axis, axis + 1), attrs);
    if (ctx[interleaved]) {
      copy_turns(ctx, c, all_cos, axis, sections[axis]);
      copy_turns(ctx, s, all_sin, axis, sections[axis]);
      continue;
    }
    ops::copy_into(ctx, c.slice(1, begin, end), all_cos.slice(1, begin, end));
    ops::copy_into(ctx, s.slice(1, begin, end), all_sin.slice(1, begin, end));
    begin = end;
  }
  hold_still(ctx, ctx[turning], all_cos, all_sin);
  ctx[cos] = widened(ctx, all_cos, still, 1);
  ctx[sin] = widened(ctx, all_sin, still, 0);
}

void run_language_layer(Context& ctx, const KeptStates& kept) {
  using L = LanguageLayer;
  const Tensor x = ctx[L::hidden];
  const double shift = ctx[L::norm_shift], epsilon = ctx[L::eps];
  const Projected made =
      project(ctx, ops::rms_norm(ctx, x, shifted(ctx, ctx[L::norm1], shift), epsilon),
              ctx[L::heads], ctx[L::kv_heads]);
  const Tensor seen = gated(ctx, attended(ctx, made, kept), made.gates);
  const bool is_normed = bool(ctx[L::after1]);
  const Tensor projected =
      blocks::wide_linear(ctx, seen, ctx[L::proj], {}, HEDDLE_ACT_NONE, is_normed ? Tensor() : x);
  finish_language_layer(ctx, is_normed ? added(ctx, x, projected, L::after1) : projected);
}

void finish_language_layer(Context& ctx, const Tensor& middle) {
  using L = LanguageLayer;
  const double shift = ctx[L::norm_shift], epsilon = ctx[L::eps];
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
