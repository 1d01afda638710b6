#include "sampler_algebra.h"

#include <algorithm>
#include <tuple>

namespace heddle::samplers::steps {

Expr& Expr::add(double factor, const Expr& other) {
  for (const Part& part : other.parts_) {
    const auto found = std::find_if(parts_.begin(), parts_.end(), [&part](const Part& own) {
      return own.symbol == part.symbol && own.index == part.index;
    });
    if (found == parts_.end())
      parts_.push_back({part.symbol, part.index, factor * part.factor});
    else
      found->factor += factor * part.factor;
  }
  return *this;
}

Combination Expr::seen_by(std::size_t k) const {
  Combination terms;
  for (const Part& part : parts_) {
    const auto index = static_cast<std::uint32_t>(part.index);
    const auto made = static_cast<std::uint32_t>(k);
    switch (part.symbol) {
      case Symbol::kStart:
        terms.push_back({HEDDLE_SAMPLER_START, 0, part.factor});
        break;
      case Symbol::kOwn:
        terms.push_back({HEDDLE_SAMPLER_DENOISED, made - index, part.factor});
        break;
      case Symbol::kPast:
        terms.push_back({HEDDLE_SAMPLER_DENOISED, made + 1 + index, part.factor});
        break;
      case Symbol::kOwnPlain:
        terms.push_back({HEDDLE_SAMPLER_UNCONDITIONED, made - index, part.factor});
        break;
      case Symbol::kPastPlain:
        terms.push_back({HEDDLE_SAMPLER_UNCONDITIONED, made + 1 + index, part.factor});
        break;
      case Symbol::kSlope:
        terms.push_back({HEDDLE_SAMPLER_SLOPE, index, part.factor});
        break;
      case Symbol::kPlainSlope:
        terms.push_back({HEDDLE_SAMPLER_UNCONDITIONED_SLOPE, index, part.factor});
        break;
      case Symbol::kNoise:
        terms.push_back({HEDDLE_SAMPLER_NOISE, index, part.factor});
        break;
    }
  }
  std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) {
    return std::tie(a.of, a.age) < std::tie(b.of, b.age);
  });
  return terms;
}

Expr operator+(Expr a, const Expr& b) { return a.add(1.0, b); }
Expr operator-(Expr a, const Expr& b) { return a.add(-1.0, b); }
Expr operator*(double factor, const Expr& a) { return Expr().add(factor, a); }

Expr start() { return Expr(Expr::Symbol::kStart); }
Expr own(std::size_t k) { return Expr(Expr::Symbol::kOwn, k); }
Expr past(std::size_t k) { return Expr(Expr::Symbol::kPast, k); }
Expr own_plain(std::size_t k) { return Expr(Expr::Symbol::kOwnPlain, k); }
Expr past_plain(std::size_t k) { return Expr(Expr::Symbol::kPastPlain, k); }
Expr earlier_slope(std::size_t k) { return Expr(Expr::Symbol::kSlope, k); }
Expr earlier_plain_slope(std::size_t k) { return Expr(Expr::Symbol::kPlainSlope, k); }
Expr fresh_noise(double factor) {
  return factor == 0.0 ? Expr() : Expr(Expr::Symbol::kNoise, 0, factor);
}
Expr unused_noise() { return Expr(Expr::Symbol::kNoise, 0, 0.0); }
Expr earlier_noise(std::size_t k) { return Expr(Expr::Symbol::kNoise, k + 1); }

Evaluation inner(std::size_t k, double sigma, const Expr& next) {
  return {.sigma = sigma, .next = next.seen_by(k), .after = HEDDLE_SAMPLER_KEEP_START};
}

Evaluation last(std::size_t k, double sigma, const Expr& next) {
  return {.sigma = sigma, .next = next.seen_by(k), .after = HEDDLE_SAMPLER_MOVE_START};
}

Evaluation corrected(std::size_t k, double sigma, const Expr& start, const Expr& next) {
  return {.sigma = sigma,
          .next = next.seen_by(k),
          .after = HEDDLE_SAMPLER_CORRECT_START,
          .start = start.seen_by(k)};
}

Expr slope(const Expr& point, const Expr& denoised, double sigma) {
  return (1.0 / sigma) * (point - denoised);
}

Expr towards(const Expr& denoised, double from, double to) {
  return (to / from) * start() + (1.0 - to / from) * denoised;
}

std::vector<Evaluation> to_denoised(const Step& step) { return {last(0, step.sigma(), own(0))}; }

std::vector<Evaluation> euler_step(const Step& step) {
  return {last(0, step.sigma(), towards(own(0), step.sigma(), step.next()))};
}

Landing ancestral(double from, double to, double eta) {
  if (eta == 0.0) return {.down = to};
  // From pure noise all of it is fresh.
  if (std::isinf(from)) return {.down = 0.0, .up = to};
  // In this order a rise, which has no such landing, gives NaN and is refused.
  const double up =
      std::min(eta * std::sqrt(to * to * (from * from - to * to) / (from * from)), to);
  return {.down = std::sqrt(to * to - up * up), .up = up};
}

Landing land(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (!step.flow()) return ancestral(from, to, step.run.eta);
  if (to == 0.0) return {};
  const double down = to * (1.0 + (to / from - 1.0) * step.run.eta);
  const double rescale = (1.0 - to) / (1.0 - down);
  const double rest = to * to - down * down * rescale * rescale;
  const bool rounding = rest < 0.0 && rest > -1e-12;
  return {.down = down, .up = std::sqrt(rounding ? 0.0 : rest), .rescale = rescale};
}

Expr landed(const Step& step, const Landing& landing, const Expr& x) {
  return landing.rescale * x + fresh_noise(landing.up * step.run.noise_factor);
}

double phi1(double y) { return std::expm1(y) / y; }
double phi2(double y) { return (phi1(y) - 1.0) / y; }

}  // namespace heddle::samplers::steps
