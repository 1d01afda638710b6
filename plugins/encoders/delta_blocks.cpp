#include "delta_blocks.h"

#include <cmath>
#include <vector>

#include <heddle/delta_ops.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr std::size_t kMostTerms = 4;  // of combine/1
// Under the root of the sum of squares of a query or key.
constexpr double kUnitEps = 1e-6;

// x (B, S, C) behind `before` (B, n - 1, C), or behind zeros.
Tensor behind(Context& ctx, const Tensor& x, const Tensor& before, std::int64_t taps) {
  const std::int64_t length = x.size(1), gap = taps - 1;
  const Tensor all = ctx.make({x.size(0), gap + length, x.size(2)}, HEDDLE_F32);
  if (before)
    ops::copy_into(ctx, before, all.slice(1, 0, gap));
  else
    ops::fill(ctx, all.slice(1, 0, gap), 0);
  ops::copy_into(ctx, x, all.slice(1, gap, gap + length));
  return all;
}

// Each channel's sum over n tokens (B, n - 1 + S, C), then SiLU: (B, S, C).
Tensor convolved(Context& ctx, const Tensor& all) {
  const Tensor filter = ctx[LanguageDeltaLayer::conv];
  const std::int64_t channels = filter.size(0), taps = filter.size(2),
                     length = all.size(1) - taps + 1;
  const Tensor rows = ops::cast(ctx, filter.reshape({channels, taps}).permute({1, 0}), HEDDLE_F32);
  std::vector<ops::Term> terms;
  for (std::int64_t i = 0; i < taps; ++i) {
    if (terms.size() == kMostTerms) terms.assign(1, ops::Term{1, ops::combine(ctx, terms)});
    terms.push_back({1, ops::mul(ctx, all.slice(1, i, i + length),
                                 rows.slice(0, i, i + 1).reshape({1, 1, channels}))});
  }
  return ops::activate(ctx, ops::combine(ctx, terms), HEDDLE_ACT_SILU);
}

struct DeltaPorts {
  const Input<Tensor>*tail = nullptr, *state = nullptr;
  const Output<Tensor>*tail_out = nullptr, *state_out = nullptr;
};

void run_delta_layer(Context& ctx, const DeltaPorts& kept) {
  using D = LanguageDeltaLayer;
  using L = LanguageLayer;
  const Tensor x = ctx[L::hidden], weight = shifted(ctx, ctx[L::norm1], ctx[L::norm_shift]),
               normed = ops::rms_norm(ctx, x, weight, ctx[L::eps]);
  const std::int64_t taps = ctx[D::conv].size(2), pairs = ctx[D::pairs], depth = ctx[D::depth],
                     keys = 2 * pairs * depth, length = x.size(1);
  const bool continues = kept.tail != nullptr && ctx.has(*kept.tail);
  const Tensor made = blocks::wide_linear(ctx, normed, ctx[D::channels], {}),
               all = behind(ctx, made, continues ? ctx[*kept.tail] : Tensor(), taps),
               mixed = convolved(ctx, all);
  const ops::DeltaResults read = ops::gated_delta_rule(
      ctx,
      {blocks::split_heads(mixed.slice(2, 0, keys), 2 * pairs),
       blocks::split_heads(mixed.slice(2, keys, mixed.size(2)), ctx[D::value_heads]),
       blocks::wide_linear(ctx, normed, ctx[D::rates], {}), ctx[D::log_rate], ctx[D::rate_shift],
       continues ? ctx[*kept.state] : Tensor()},
      {kUnitEps, 1 / std::sqrt(double(depth))});
  if (kept.tail_out != nullptr) {
    ctx[*kept.tail_out] = ops::contiguous(ctx, all.slice(1, length, length + taps - 1));
    ctx[*kept.state_out] = read.state;
  }
  const Tensor evened = ctx.make(read.out.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, read.out, ctx[D::norm], ctx[L::eps], evened);
  const Tensor gates = blocks::wide_linear(ctx, normed, ctx[D::gate], {}),
               gated = ctx.make(gates.shape());
  ops::gated_activation_into(ctx, gates, blocks::join_heads(evened), HEDDLE_ACT_SILU, gated);
  finish_language_layer(ctx, blocks::wide_linear(ctx, gated, ctx[D::proj], {}, HEDDLE_ACT_NONE, x));
}

}  // namespace

void LanguageDeltaLayer::execute(Context& ctx) { run_delta_layer(ctx, {}); }

void LanguageKeptDeltaLayer::execute(Context& ctx) {
  run_delta_layer(ctx, {&tail, &state, &tail_out, &state_out});
}

}  // namespace heddle::encoders
