#include "attention_guidance.h"

#include <cfloat>
#include <numbers>

#include <heddle/ops.hpp>

namespace heddle::denoisers {
namespace {

constexpr double kLeastNorm = 1e-6;

enum NagNumber { kScale, kOneMinusScale, kTau, kAlpha, kOneMinusAlpha };

// (..., W) -> (..., 1), in f32. Parts of the rows are added to each other until one number is left:
// the catalogue has no sum along an axis, and this one has the same order everywhere.
Tensor sum_of_rows(Context& ctx, Tensor x) {
  constexpr std::int64_t kMostTerms = 4;  // of combine/1
  while (x.size(-1) > 1) {
    const std::int64_t width = x.size(-1), part = (width + kMostTerms - 1) / kMostTerms,
                       whole = width / part, rest = width - whole * part;
    std::vector<ops::Term> terms;
    for (std::int64_t i = 0; i < whole; ++i)
      terms.push_back({1.0, x.slice(-1, i * part, (i + 1) * part)});
    const Tensor sum = ops::combine(ctx, terms);
    if (rest > 0) {
      const Tensor begin = sum.slice(-1, 0, rest);
      ops::add_into(ctx, begin, x.slice(-1, whole * part, width), begin);
    }
    x = sum;
  }
  return x;
}

// (..., W) -> (..., 1): |x| = 2 relu(x) - x, which is exact.
Tensor l1_norm(Context& ctx, const Tensor& x) {
  const Tensor sizes = ctx.make(x.shape(), HEDDLE_F32);
  ops::activate_into(ctx, x, HEDDLE_ACT_RELU, sizes);
  ops::combine_into(ctx, {{2.0, sizes}, {-1.0, x}}, sizes);
  return sum_of_rows(ctx, sizes);
}

// The RMS norm of (n, c) has c sqrt(2) / sqrt(n^2 + c^2) in the place of c: with a c that is little
// beside n, 1 / n but for a factor. REQUIRES: n (..., 1) is at least kLeastNorm.
constexpr double kLittle = 1e-9;
constexpr double kOfReciprocal = 1 / (kLittle * std::numbers::sqrt2);
Tensor reciprocal(Context& ctx, const Tensor& n) {
  Shape shape = n.shape();
  shape.back() = 2;
  const Tensor both = ctx.make(shape, HEDDLE_F32), normed = ctx.make(shape, HEDDLE_F32);
  ops::copy_into(ctx, n, both.slice(-1, 0, 1));
  ops::fill(ctx, both.slice(-1, 1, 2), kLittle);
  ops::rms_norm_into(ctx, both, {}, 0.0, normed);
  return normed.slice(-1, 1, 2);
}

}  // namespace

void guide_attention(Context& ctx, const Tensor& nag, const Tensor& z) {
  const std::int64_t items = z.size(0) / 2, tokens = z.size(1), width = z.size(2);
  const Tensor pairs = z.reshape({items, 2, tokens, width});
  const Tensor positive = pairs.slice(1, 0, 1), negative = pairs.slice(1, 1, 2);
  const auto number = [&](NagNumber i) { return nag.slice(0, i, i + 1).reshape({1, 1, 1, 1}); };
  const Tensor guided = ctx.make(positive.shape(), HEDDLE_F32),
               part = ctx.make(positive.shape(), HEDDLE_F32);
  ops::mul_into(ctx, positive, number(kScale), guided);
  ops::mul_into(ctx, negative, number(kOneMinusScale), part);
  ops::add_into(ctx, guided, part, guided);

  Tensor norms = ctx.make({items, 1, tokens, 2}, HEDDLE_F32);
  ops::copy_into(ctx, l1_norm(ctx, positive), norms.slice(-1, 0, 1));
  ops::copy_into(ctx, l1_norm(ctx, guided), norms.slice(-1, 1, 2));
  if (ctx.group().kind == HEDDLE_GROUP_ROWS) norms = ops::all_reduce(ctx, norms);
  norms = ops::scale_clamp(ctx, norms, {1, 0, kLeastNorm, FLT_MAX});

  // min(r, tau) / r = min(1, tau |p| / |guided|).
  const Tensor most = ops::mul(ctx, norms.slice(-1, 0, 1), number(kTau));
  const Tensor quotient = ops::mul(ctx, most, reciprocal(ctx, norms.slice(-1, 1, 2)));
  const Tensor factor = ops::scale_clamp(ctx, quotient, {kOfReciprocal, 0, 0, 1});
  ops::mul_into(ctx, guided, ops::mul(ctx, factor, number(kAlpha)), guided);
  ops::mul_into(ctx, positive, number(kOneMinusAlpha), part);
  ops::add_into(ctx, guided, part, positive);
}

Tensor twice(Context& ctx, const Tensor& x) {
  Shape shape = x.shape();
  shape.insert(shape.begin() + 1, 1);
  const Tensor one = x.reshape(shape);
  shape[1] = 2;
  const Tensor both = ctx.make(shape, x.dtype());
  for (const int side : {0, 1}) ops::copy_into(ctx, one, both.slice(1, side, side + 1));
  shape.erase(shape.begin() + 1);
  shape[0] *= 2;
  return both.reshape(shape);
}

Tensor as_pairs(const Tensor& x) {
  Shape shape = x.shape();
  if (shape[1] % 2 != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a pair of conditionings has parts of one size each, got " +
                    std::to_string(shape[1]) + " rows for both");
  shape[0] *= 2;
  shape[1] /= 2;
  return x.reshape(shape);
}

}  // namespace heddle::denoisers
