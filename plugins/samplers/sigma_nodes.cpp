#include "sigma_nodes.h"

#include <algorithm>
#include <cmath>
#include <heddle/checked.hpp>

#include "sigmas_value.h"

namespace heddle::samplers {
namespace {

constexpr float kAlmostClean = 0.0001f;  // where ComfyUI starts a schedule that would start at 0

Sigmas part(const Sigmas& sigmas, std::size_t begin, std::size_t end) {
  begin = std::min(begin, sigmas.size());
  end = std::clamp(end, begin, sigmas.size());
  return {sigmas.begin() + std::ptrdiff_t(begin), sigmas.begin() + std::ptrdiff_t(end)};
}

}  // namespace

void SplitSigmas::execute(Context& ctx) {
  const Sigmas all = sigmas_of(ctx, ctx[sigmas]);
  const auto at = checked_cast<std::size_t>(ctx[step], "step");
  ctx[high] = tensor_of(ctx, part(all, 0, at + 1));
  ctx[low] = tensor_of(ctx, part(all, at, all.size()));
}

void SplitSigmasDenoise::execute(Context& ctx) {
  const Sigmas all = sigmas_of(ctx, ctx[sigmas]);
  // ComfyUI's round() is Python's, half to even, as nearbyint() is.
  const double steps = all.empty() ? 0.0 : double(all.size() - 1);
  const std::int64_t kept = checked_round(steps * ctx[denoise], "denoise");
  // Its slices count from the end: [:-0] is empty, [-(0 + 1):] the last level.
  const std::size_t count = std::min(checked_cast<std::size_t>(kept, "denoise"), all.size());
  ctx[high] = tensor_of(ctx, part(all, 0, count == 0 ? 0 : all.size() - count));
  ctx[low] = tensor_of(ctx, part(all, all.size() - std::min(count + 1, all.size()), all.size()));
}

void FlipSigmas::execute(Context& ctx) {
  Sigmas all = sigmas_of(ctx, ctx[sigmas]);
  std::reverse(all.begin(), all.end());
  if (!all.empty() && all.front() == 0.0f) all.front() = kAlmostClean;
  ctx[out] = tensor_of(ctx, all);
}

void SetFirstSigma::execute(Context& ctx) {
  Sigmas all = sigmas_of(ctx, ctx[sigmas]);
  if (!all.empty()) all.front() = float(ctx[sigma]);
  ctx[out] = tensor_of(ctx, all);
}

}  // namespace heddle::samplers
