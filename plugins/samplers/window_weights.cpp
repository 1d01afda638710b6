#include "window_weights.h"

#include <algorithm>
#include <cmath>

namespace heddle::samplers {
namespace {

// By the distance from the nearer end, from 1 on.
double pyramid(std::size_t i, std::size_t count) { return double(std::min(i, count - 1 - i) + 1); }

// By the distance from the middle of first and last place, however they lie.
double relative(const ContextWindow& window, std::size_t i) {
  const auto first = double(window.places.front()), last = double(window.places.back());
  const double half = (last - first + 1e-2) / 2;
  return std::max(1e-2, 1 - std::abs(double(window.places[i]) - (first + last) / 2) / half);
}

// Ramps over the overlap, but where the axis ends.
double linear(const ContextWindow& window, std::size_t i, std::size_t overlap, std::int64_t full) {
  constexpr double kNothing = 1e-37;
  const std::size_t count = window.places.size();
  const auto [first, last] = std::ranges::minmax(window.places);
  const auto ramp = [&](std::size_t k) {
    return overlap == 1 ? kNothing : kNothing + (1 - kNothing) * double(k) / double(overlap - 1);
  };
  // Of two ramps in one place the second holds; from 1 downwards.
  const std::size_t to_end = count - 1 - i;
  if (last < full - 1 && to_end < overlap) return overlap == 1 ? 1.0 : ramp(to_end);
  if (first > 0 && i < overlap) return ramp(i);
  return 1.0;
}

}  // namespace

void weigh(ContextWindows& windows, const WindowRule& rule, std::int64_t full) {
  using Fuse = WindowRule::Fuse;
  std::vector<double> sums(std::size_t(full), 0.0);
  for (ContextWindow& window : windows) {
    const std::size_t count = window.places.size();
    const std::size_t overlap = std::min(std::size_t(rule.overlap), count);
    window.weights.assign(count, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto later = window.places.begin() + std::ptrdiff_t(i) + 1;
      if (rule.fuse == Fuse::kRelative)
        window.weights[i] = relative(window, i);
      else if (std::find(later, window.places.end(), window.places[i]) != window.places.end())
        continue;
      else
        window.weights[i] = rule.fuse == Fuse::kPyramid         ? pyramid(i, count)
                            : rule.fuse == Fuse::kOverlapLinear ? linear(window, i, overlap, full)
                                                                : 1.0;
      sums[std::size_t(window.places[i])] += window.weights[i];
    }
  }
  const auto lacking = std::ranges::find(sums, 0.0);
  if (lacking != sums.end())
    throw Error(HEDDLE_UNSUPPORTED,
                "place " + std::to_string(lacking - sums.begin()) + " of " + std::to_string(full) +
                    " is in no context window of length " + std::to_string(rule.length) +
                    ". Take another context_schedule or a smaller context_stride.");
  for (ContextWindow& window : windows)
    for (std::size_t i = 0; i < window.places.size(); ++i)
      window.weights[i] /= sums[std::size_t(window.places[i])];
}

}  // namespace heddle::samplers
