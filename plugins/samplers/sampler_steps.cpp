// The algebra, and the samplers whose steps do not look back.
#include "sampler_steps.h"

#include <algorithm>

namespace heddle::samplers::steps {
namespace {

template <std::size_t N>
void add_scaled(std::array<double, N>& to, double factor, const std::array<double, N>& from) {
  for (std::size_t k = 0; k < N; ++k) to[k] += factor * from[k];
}

Expr add(Expr a, double factor, const Expr& b) {
  a.start += factor * b.start;
  add_scaled(a.own, factor, b.own);
  add_scaled(a.past, factor, b.past);
  add_scaled(a.slopes, factor, b.slopes);
  a.noise += factor * b.noise;
  return a;
}

// Evaluations from named by time to newest first, `k` being the last one made.
Combination resolve(std::size_t k, const Expr& expr) {
  Combination result{.x = expr.start, .slopes = expr.slopes, .noise = expr.noise};
  for (std::size_t age = 0; age < result.denoised.size(); ++age) {
    if (age <= k) {
      result.denoised[age] = expr.own[k - age];
    } else if (age - k - 1 < expr.past.size()) {
      result.denoised[age] = expr.past[age - k - 1];
    }
  }
  return result;
}

// dx / dsigma of the probability flow at a point where the model found `denoised`.
Expr slope(const Expr& point, const Expr& denoised, double sigma) {
  return (1.0 / sigma) * (point - denoised);
}

Expr own_slope(const Step& step) { return slope(start(), own(0), step.sigma()); }

// x moved along the line from the noisy state to `denoised`, from level `from` to level `to`.
Expr towards(const Expr& denoised, double from, double to) {
  return (to / from) * start() + (1.0 - to / from) * denoised;
}

Expr landed(const Step& step, const Landing& landing, const Expr& x) {
  return landing.rescale * x + fresh_noise(landing.up * step.sampler.noise_factor);
}

// DPM-Solver-2 (Lu et al. 2022): the slope at the geometric middle.
std::vector<Evaluation> dpm_2_to(const Step& step, const Landing& landing) {
  const double from = step.sigma();
  if (landing.down == 0.0) return to_denoised(step);
  const double middle = std::sqrt(from * landing.down);
  const Expr halfway = towards(own(0), from, middle);
  const Expr arrived = start() + (landing.down - from) * slope(halfway, own(1), middle);
  return {inner(0, from, halfway), last(1, middle, landed(step, landing, arrived))};
}

}  // namespace

Expr operator+(const Expr& a, const Expr& b) { return add(a, 1.0, b); }
Expr operator-(const Expr& a, const Expr& b) { return add(a, -1.0, b); }
Expr operator*(double factor, const Expr& a) { return add({}, factor, a); }

Expr own(std::size_t k) {
  Expr expr;
  expr.own[k] = 1.0;
  return expr;
}

Expr past(std::size_t k) {
  Expr expr;
  expr.past[k] = 1.0;
  return expr;
}

Expr earlier_slope(std::size_t k) {
  Expr expr;
  expr.slopes[k] = 1.0;
  return expr;
}

Expr fresh_noise(double factor) { return {.noise = factor}; }

Evaluation inner(std::size_t k, double sigma, const Expr& next) {
  return {sigma, resolve(k, next), Evaluation::After::kKeepStart, {}};
}

Evaluation last(std::size_t k, double sigma, const Expr& next) {
  return {sigma, resolve(k, next), Evaluation::After::kMoveStart, {}};
}

Evaluation corrected(double sigma, const Expr& start, const Expr& next) {
  return {sigma, resolve(0, next), Evaluation::After::kCorrectStart, resolve(0, start)};
}

Landing ancestral(double from, double to, double eta) {
  if (eta == 0.0) return {.down = to};
  // In this order a rise, which has no such landing, gives NaN and is refused.
  const double up =
      std::min(eta * std::sqrt(to * to * (from * from - to * to) / (from * from)), to);
  return {.down = std::sqrt(to * to - up * up), .up = up};
}

Landing land(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (!step.flow()) return ancestral(from, to, step.sampler.eta);
  if (to == 0.0) return {};
  const double down = to * (1.0 + (to / from - 1.0) * step.sampler.eta);
  const double rescale = (1.0 - to) / (1.0 - down);
  const double rest = to * to - down * down * rescale * rescale;
  const bool rounding = rest < 0.0 && rest > -1e-12;
  return {.down = down, .up = std::sqrt(rounding ? 0.0 : rest), .rescale = rescale};
}

std::vector<Evaluation> euler(const Step& step) {
  return {last(0, step.sigma(), towards(own(0), step.sigma(), step.next()))};
}

std::vector<Evaluation> euler_ancestral(const Step& step) {
  const Landing landing = land(step);
  if (landing.down == 0.0) return to_denoised(step);
  return {
      last(0, step.sigma(), landed(step, landing, towards(own(0), step.sigma(), landing.down)))};
}

// Karras et al. 2022, algorithm 1 without churn.
std::vector<Evaluation> heun(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return euler(step);
  const Expr guess = towards(own(0), from, to);
  const Expr mean = 0.5 * (own_slope(step) + slope(guess, own(1), to));
  return {inner(0, from, guess), last(1, to, start() + (to - from) * mean)};
}

// Heun with weights that trust later slopes by their level, three of them while the schedule lasts.
std::vector<Evaluation> heun_pp2(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  const std::size_t steps_left = step.sigmas.size() - 1 - step.i;
  if (steps_left == 1 || to == 0.0) return euler(step);
  const double top = step.sigmas.front();
  const Expr second = towards(own(0), from, to);
  const Expr slope1 = own_slope(step);
  const Expr slope2 = slope(second, own(1), to);
  if (steps_left == 2) {
    const double weight2 = to / (2.0 * top);
    const Expr mean = (1.0 - weight2) * slope1 + weight2 * slope2;
    return {inner(0, from, second), last(1, to, start() + (to - from) * mean)};
  }
  const double after = step.sigmas[step.i + 2];
  const Expr third = second + (after - to) * slope2;
  const Expr slope3 = slope(third, own(2), after);
  const double weight2 = to / (3.0 * top);
  const double weight3 = after / (3.0 * top);
  const Expr mean = (1.0 - weight2 - weight3) * slope1 + weight2 * slope2 + weight3 * slope3;
  return {inner(0, from, second), inner(1, to, third),
          last(2, after, start() + (to - from) * mean)};
}

std::vector<Evaluation> dpm_2(const Step& step) { return dpm_2_to(step, {.down = step.next()}); }

std::vector<Evaluation> dpm_2_ancestral(const Step& step) { return dpm_2_to(step, land(step)); }

// DPM-Solver++(2S) (Lu et al. 2022b) with ancestral noise.
std::vector<Evaluation> dpmpp_2s_ancestral(const Step& step) {
  const double from = step.sigma();
  const Landing landing = land(step);
  if (landing.down == 0.0) return to_denoised(step);
  double middle = std::sqrt(from * landing.down);
  if (step.flow()) {
    // The ratio of signal to noise is 0 at level 1, and its logarithm has no middle.
    const double lambda = 0.5 * (step.lambda(from) + step.lambda(landing.down));
    middle = from == 1.0 ? 0.9999 : 1.0 / (std::exp(lambda) + 1.0);
  }
  const Expr halfway = towards(own(0), from, middle);
  return {inner(0, from, halfway),
          last(1, middle, landed(step, landing, towards(own(1), from, landing.down)))};
}

// Ho et al. 2020, on x scaled to unit variance.
std::vector<Evaluation> ddpm(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  const double kept = 1.0 / (from * from + 1.0);
  const double kept_next = 1.0 / (to * to + 1.0);
  const double ratio = kept / kept_next;
  const Expr noise_found = slope(start(), own(0), from);
  const Expr mean =
      std::sqrt(1.0 / ratio) *
      (std::sqrt(kept) * start() - ((1.0 - ratio) / std::sqrt(1.0 - kept)) * noise_found);
  if (to == 0.0) return {last(0, from, mean)};
  const double spread = std::sqrt((1.0 - ratio) * (1.0 - kept_next) / (1.0 - kept));
  const Expr noisy = mean + fresh_noise(spread * step.sampler.noise_factor);
  return {last(0, from, std::sqrt(1.0 + to * to) * noisy)};
}

// Luo et al. 2023: the clean picture, noised again.
std::vector<Evaluation> lcm(const Step& step) {
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const Expr noise = fresh_noise(to * step.sampler.noise_factor);
  return {last(0, step.sigma(), step.alpha(to) * own(0) + noise)};
}

}  // namespace heddle::samplers::steps
