#include "sigma_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <heddle/checked.hpp>
#include <limits>
#include <numbers>

#include "linspace.h"
#include "model_sampling.h"
#include "sigmas_value.h"

namespace heddle::samplers {
namespace {

constexpr float kAlmostClean = 0.0001f;  // where ComfyUI starts a schedule that would start at 0

Sigmas part(const Sigmas& sigmas, std::size_t begin, std::size_t end) {
  begin = std::min(begin, sigmas.size());
  end = std::clamp(end, begin, sigmas.size());
  return {sigmas.begin() + std::ptrdiff_t(begin), sigmas.begin() + std::ptrdiff_t(end)};
}

// Parts of a step of length 1, without its ends, by ComfyUI's names: "cosine" is a sine and "sine"
// one minus a cosine.
std::vector<float> parts_of_step(int steps, const std::string& spacing) {
  std::vector<float> parts = linspace(0.0f, 1.0f, steps + 1);
  parts = {parts.begin() + 1, parts.end() - 1};
  constexpr float kRightAngle = std::numbers::pi_v<float> / 2.0f;
  for (float& x : parts) {
    if (spacing == "cosine") x = std::sin(x * kRightAngle);
    if (spacing == "sine") x = 1.0f - std::cos(x * kRightAngle);
  }
  return parts;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A sign, digits, dots, then at least one digit: what ComfyUI's pattern finds. Returns its end, or
// `at` where none begins there.
std::size_t number_end(const std::string& text, std::size_t at) {
  std::size_t end = at;
  if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
  std::size_t last = at;  // behind the last digit of a match
  bool dotted = false;
  for (; end < text.size(); ++end) {
    if (is_digit(text[end]))
      last = end + 1;
    else if (text[end] == '.' && !dotted)
      dotted = true;
    else
      break;
  }
  return last;
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

void ExtendIntermediateSigmas::execute(Context& ctx) {
  const Sigmas all = sigmas_of(ctx, ctx[sigmas]);
  const std::vector<float> parts =
      parts_of_step(checked_cast<int>(ctx[steps], "steps"), ctx[spacing]);
  const double start = ctx[start_at_sigma];
  const float highest = start < 0 ? std::numeric_limits<float>::infinity() : float(start);
  const auto lowest = float(ctx[end_at_sigma]);
  Sigmas extended;
  for (std::size_t i = 0; i < all.size(); ++i) {
    extended.push_back(all[i]);
    if (i + 1 == all.size() || all[i] < lowest || all[i] > highest) continue;
    for (const float part : parts) extended.push_back(part * (all[i + 1] - all[i]) + all[i]);
  }
  ctx[out] = tensor_of(ctx, extended);
}

void ManualSigmas::execute(Context& ctx) {
  const std::string text = ctx[sigmas];
  Sigmas found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = number_end(text, at);
    if (end == at) {
      ++at;
      continue;
    }
    found.push_back(float(std::strtod(text.substr(at, end - at).c_str(), nullptr)));
    at = end;
  }
  ctx[out] = tensor_of(ctx, found);
}

void SamplingPercentToSigma::execute(Context& ctx) {
  const NoiseLevels levels = model_sampling(ctx[model]).levels;
  const double percent = ctx[sampling_percent];
  double sigma = levels.percent_to_sigma(percent);
  if (ctx[return_actual_sigma] && percent == 0.0) sigma = levels.sigma_max();
  if (ctx[return_actual_sigma] && percent == 1.0) sigma = levels.sigma_min();
  ctx[sigma_value] = sigma;
}

}  // namespace heddle::samplers
