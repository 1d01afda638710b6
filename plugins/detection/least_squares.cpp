#include "least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle::detection {
namespace {

using Numbers = std::pmr::vector<double>;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon(),
                 kLeast = std::numeric_limits<double>::min();
constexpr double kStepError = 1e-8, kGradientError = 1e-8, kFactor = 100;

double length_of(const Numbers& numbers) {
  double squares = 0;
  for (const double number : numbers) squares += number * number;
  return std::sqrt(squares);
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Damped {
  double step, damping;
};

// What a search trusts in: steps up to `region` in units of 1 / scale, the steepest slope yet.
struct Trust {
  double region, damping = 0, scale = 1;
  bool is_first = true;
};

// The step slope q / (slope^2 + damping scale^2), damped until it is about as long as the region;
// q: what is left over along the slope.
Damped damped_step(double slope, double q, const Trust& trust) {
  constexpr double kNear = 0.1;
  constexpr int kMostRounds = 10;
  const double region = trust.region, unit = trust.scale, free = slope != 0 ? q / slope : 0,
               most = unit * std::abs(free);
  double excess = most - region;
  if (excess <= kNear * region) return {free, 0};
  double low = 0;
  if (slope != 0) {
    const double scaled = unit / std::abs(slope);
    low = excess / region / scaled / scaled;
  }
  const double gradient = std::abs(slope * q) / unit;
  double high = gradient / region;
  if (high == 0) high = kLeast / std::min(region, kNear);
  double damping = std::min(std::max(trust.damping, low), high);
  if (damping == 0) damping = gradient / most;
  double step = free;
  for (int round = 1;; ++round) {
    if (damping == 0) damping = std::max(kLeast, 0.001 * high);
    const double whole = slope * slope + damping * unit * unit;
    step = slope * q / whole;
    const double before = excess;
    excess = unit * std::abs(step) - region;
    const bool shrinks = low == 0 && excess <= before && before < 0;
    if (std::abs(excess) <= kNear * region || shrinks || round == kMostRounds) break;
    if (excess > 0) low = std::max(low, damping);
    if (excess < 0) high = std::min(high, damping);
    damping = std::max(low, damping + excess / region * whole / (unit * unit));
  }
  return {step, damping};
}

// Makes the trust region fit to what a step promised and gained, each over what is left.
void adapt(Trust& trust, double length, double gained, double ratio, double slope_along) {
  if (ratio <= 0.25) {
    double factor = gained >= 0 ? 0.5 : 0.5 * slope_along / (slope_along + 0.5 * gained);
    if (gained <= -1 || factor < 0.1) factor = 0.1;
    trust.region = factor * std::min(trust.region, length / 0.1);
    trust.damping /= factor;
  } else if (trust.damping == 0 || ratio >= 0.75) {
    trust.region = length / 0.5;
    trust.damping *= 0.5;
  }
}

}  // namespace

double least_squares(const Residuals& residuals, std::size_t count, const LeastSquares& search,
                     std::pmr::memory_resource& memory) {
  constexpr double kAccepted = 1e-4;
  Numbers left(count, &memory), other(count, &memory);
  double x = search.start;
  residuals(x, left);
  double size = length_of(left);
  if (!std::isfinite(size)) return std::numeric_limits<double>::quiet_NaN();
  int calls = 1;
  Trust trust{kFactor};
  while (true) {
    const double small = std::sqrt(kEpsilon), h = x == 0 ? small : small * std::abs(x);
    residuals(x + h, other);
    ++calls;
    for (std::size_t i = 0; i < count; ++i) other[i] = (other[i] - left[i]) / h;
    const double slope = length_of(other), q = slope != 0 ? dot(other, left) / slope : 0;
    if (size == 0 || std::abs(q) / size <= kGradientError) return x;
    if (calls == 2) {
      trust.scale = slope != 0 ? slope : 1;
      if (x != 0) trust.region = kFactor * trust.scale * std::abs(x);
    }
    trust.scale = std::max(trust.scale, slope);
    double ratio = 0;
    while (ratio < kAccepted) {
      const Damped way = damped_step(slope, q, trust);
      trust.damping = way.damping;
      const double next = x - way.step, length = trust.scale * std::abs(way.step);
      if (trust.is_first) trust.region = std::min(trust.region, length);
      residuals(next, other);
      ++calls;
      const double next_size = length_of(other), share = next_size / size,
                   gained = 0.1 * next_size < size ? 1 - share * share : -1,
                   along = slope * std::abs(way.step) / size,
                   damped = std::sqrt(trust.damping) * length / size,
                   promised = along * along + damped * damped / 0.5;
      ratio = promised != 0 ? gained / promised : 0;
      adapt(trust, length, gained, ratio, -(along * along + damped * damped));
      const bool is_taken = ratio >= kAccepted;
      if (is_taken) {
        x = next;
        std::swap(left, other);
        size = next_size;
        trust.is_first = false;
      }
      const double gain = std::abs(gained);
      if (gain <= search.relative_error && promised <= search.relative_error && 0.5 * ratio <= 1)
        return x;
      const double far = trust.scale * std::abs(x);
      if (trust.region <= kStepError * far || calls >= search.most_calls) return x;
      if (gain <= kEpsilon && promised <= kEpsilon && 0.5 * ratio <= 1) return x;
      if (trust.region <= kEpsilon * far || !std::isfinite(ratio)) return x;
    }
  }
}

}  // namespace heddle::detection
