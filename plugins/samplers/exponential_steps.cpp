// Samplers that integrate the exponential form of the flow, with the evaluations of earlier steps:
// DPM-Solver++, RES, ER-SDE and UniPC.
#include <algorithm>

#include "sampler_steps.h"

namespace heddle::samplers::steps {
namespace {

// D found at this step minus D found at the one before, and so on.
Expr difference() { return own(0) - past(0); }
Expr earlier_difference() { return past(0) - past(1); }

// (e^y - 1) / y
double phi1(double y) { return std::expm1(y) / y; }
// (phi1(y) - 1) / y
double phi2(double y) { return (phi1(y) - 1.0) / y; }

// The common part of DPM-Solver++ SDE steps: the first-order step, and its fresh noise.
struct SdeStep {
  double h;      // step in lambda
  double total;  // h (1 + eta)
  Expr x;
  Expr noise;
};

SdeStep sde_step(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  const double eta = step.sampler.eta;
  const double h = step.lambda(to) - step.lambda(from);
  const double total = h * (1.0 + eta);
  const Expr x =
      (to / from) * std::exp(-eta * h) * start() + (-step.alpha(to) * std::expm1(-total)) * own(0);
  const double spread = std::sqrt(-std::expm1(-2.0 * eta * h));
  return {h, total, x, fresh_noise(to * spread * step.sampler.noise_factor)};
}

// Length in lambda of the step `back` steps before this one.
double earlier_h(const Step& step, std::size_t back) {
  return step.lambda(step.before(back - 1)) - step.lambda(step.before(back));
}

}  // namespace

// DPM-Solver++(2M) (Lu et al. 2022b). Its lambda is -ln sigma for flows, too.
std::vector<Evaluation> dpmpp_2m(const Step& step) {
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const double h = std::log(from / to);
  Expr denoised = own(0);
  if (step.i > 0) {
    const double ratio = std::log(step.before(1) / from) / h;
    denoised = denoised + (1.0 / (2.0 * ratio)) * difference();
  }
  return {last(0, from, (to / from) * start() + (-std::expm1(-h)) * denoised)};
}

std::vector<Evaluation> dpmpp_2m_sde(const Step& step, Correction correction) {
  if (step.next() == 0.0) return to_denoised(step);
  const SdeStep sde = sde_step(step);
  Expr x = sde.x;
  if (step.i > 0) {
    const double ratio = earlier_h(step, 1) / sde.h;
    const double weight = correction == Correction::kMidpoint ? -0.5 * std::expm1(-sde.total)
                                                              : 1.0 - phi1(-sde.total);
    x = x + (step.alpha(step.next()) * weight / ratio) * difference();
  }
  return {last(0, step.sigma(), x + sde.noise)};
}

std::vector<Evaluation> dpmpp_3m_sde(const Step& step) {
  if (step.next() == 0.0) return to_denoised(step);
  const SdeStep sde = sde_step(step);
  const double alpha = step.alpha(step.next());
  const double weight2 = std::expm1(-sde.total) / sde.total + 1.0;
  const double weight3 = weight2 / sde.total - 0.5;
  Expr x = sde.x;
  if (step.i == 1) {
    x = x + (alpha * weight2 * sde.h / earlier_h(step, 1)) * difference();
  } else if (step.i > 1) {
    const double r0 = earlier_h(step, 1) / sde.h;
    const double r1 = earlier_h(step, 2) / sde.h;
    const Expr recent = (1.0 / r0) * difference();
    const Expr older = (1.0 / r1) * earlier_difference();
    const Expr second = (1.0 / (r0 + r1)) * (recent - older);
    const Expr first = recent + r0 * second;
    x = x + (alpha * weight2) * first - (alpha * weight3) * second;
  }
  return {last(0, step.sigma(), x + sde.noise)};
}

// Zhang et al. 2023 (refined exponential solver), second order; lambda is -ln sigma for flows, too.
std::vector<Evaluation> res_multistep(const Step& step, double eta) {
  const double from = step.sigma();
  const Landing landing = ancestral(from, step.next(), eta);
  const Expr noise = fresh_noise(landing.up * step.sampler.noise_factor);
  if (step.i == 0 || landing.down == 0.0) {
    const double kept = landing.down / from;
    return {last(0, from, kept * start() + (1.0 - kept) * own(0) + noise)};
  }
  const double h = std::log(from / landing.down);
  const double before = step.before(1);
  const double down_before = ancestral(before, from, eta).down;
  const double c2 = std::log(down_before / before) / h;
  const double b2 = phi2(-h) / c2;
  const double b1 = phi1(-h) - b2;
  const Expr x = std::exp(-h) * start() + (h * b1) * own(0) + (h * b2) * past(0);
  return {last(0, from, x + noise)};
}

// Cui et al. 2023, extended reverse-time SDE, with the noise scale f and three stages.
std::vector<Evaluation> er_sde(const Step& step) {
  constexpr int kPoints = 200;
  const double from = step.sigma();
  const double to = step.next();
  if (to == 0.0) return to_denoised(step);
  const auto mu = [&step](double level) { return level / step.alpha(level); };
  const auto scale = [](double v) { return v * (std::exp(std::pow(v, 0.3)) + 10.0); };
  const double mu_from = mu(from);
  const double mu_to = mu(to);
  const double alpha = step.alpha(to);
  const double ratio = scale(mu_to) / scale(mu_from);
  Expr x = (alpha / step.alpha(from) * ratio) * start() + (alpha * (1.0 - ratio)) * own(0);
  if (step.i > 0) {
    const double delta = mu_to - mu_from;
    const double width = -delta / kPoints;
    double inverse = 0.0;
    double weighted = 0.0;
    for (int k = 0; k < kPoints; ++k) {
      const double point = mu_to + k * width;
      inverse += width / scale(point);
      weighted += width * (point - mu_from) / scale(point);
    }
    const double mu_before = mu(step.before(1));
    const Expr slope = (1.0 / (mu_from - mu_before)) * difference();
    x = x + (alpha * (delta + scale(mu_to) * inverse)) * slope;
    if (step.i > 1) {
      const double mu_first = mu(step.before(2));
      const Expr slope_before = (1.0 / (mu_before - mu_first)) * earlier_difference();
      const Expr bend = (2.0 / (mu_from - mu_first)) * (slope - slope_before);
      x = x + (alpha * (delta * delta / 2.0 + scale(mu_to) * weighted)) * bend;
    }
  }
  const double rest = mu_to * mu_to - mu_from * mu_from * ratio * ratio;
  const double spread = alpha * std::sqrt(std::max(rest, 0.0));
  return {last(0, from, x + fresh_noise(spread * step.sampler.noise_factor))};
}

namespace {

// One interval of UniPC (Zhao et al. 2023), from `from` to `to`.
struct Interval {
  int order = 1;
  double h = 0.0;                 // ln from - ln to
  double scale = 1.0;             // B(h)
  std::array<double, 3> ratio{};  // r_1 .. of the earlier evaluations, 1 for the one at `to`
  std::array<double, 3> right{};  // b_q
};

// Gaussian elimination with row pivots of `size` unknowns: sum_i ratio_i^q rho_i = right_q.
std::array<double, 3> solve(const Interval& interval, int size) {
  std::array<std::array<double, 4>, 3> rows{};
  const auto count = static_cast<std::size_t>(size);
  for (std::size_t q = 0; q < count; ++q) {
    for (std::size_t i = 0; i < count; ++i) {
      rows[q][i] = std::pow(interval.ratio[i], static_cast<double>(q));
    }
    rows[q][count] = interval.right[q];
  }
  for (std::size_t column = 0; column < count; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < count; ++row) {
      if (std::abs(rows[row][column]) > std::abs(rows[pivot][column])) pivot = row;
    }
    std::swap(rows[column], rows[pivot]);
    for (std::size_t row = 0; row < count; ++row) {
      if (row == column) continue;
      const double factor = rows[row][column] / rows[column][column];
      for (std::size_t k = column; k <= count; ++k) rows[row][k] -= factor * rows[column][k];
    }
  }
  std::array<double, 3> rho{};
  for (std::size_t i = 0; i < count; ++i) rho[i] = rows[i][count] / rows[i][i];
  return rho;
}

// Interval number k (0 is the first) of the schedule, whose last level is `end`.
Interval interval_of(const Step& step, std::size_t k, double end, Scale scale) {
  const std::size_t count = step.sigmas.size() - 1;
  const auto level = [&](std::size_t index) {
    return index == count ? end : static_cast<double>(step.sigmas[index]);
  };
  const std::size_t order = std::min({std::size_t{3}, count - 1, k + 1, count - k});
  Interval interval{.order = static_cast<int>(order), .h = std::log(level(k) / level(k + 1))};
  const double h = interval.h;
  interval.scale = scale == Scale::kStep ? -h : std::expm1(-h);
  for (std::size_t i = 1; i < order; ++i) {
    interval.ratio[i - 1] = std::log(level(k) / level(k - i)) / h;
  }
  interval.ratio[order - 1] = 1.0;
  double g = std::expm1(-h) / -h - 1.0;
  double factorial = 1.0;
  for (std::size_t q = 1; q <= order; ++q) {
    factorial *= static_cast<double>(q);
    interval.right[q - 1] = g * factorial / interval.scale;
    g = g / -h - 1.0 / (factorial * static_cast<double>(q + 1));
  }
  return interval;
}

// The first-order step from `x` with `newest` found there, minus B times `correction`.
Expr interval_step(const Interval& interval, const Expr& x, const Expr& newest,
                   const Expr& correction) {
  return std::exp(-interval.h) * x + (-std::expm1(-interval.h)) * newest -
         interval.scale * correction;
}

}  // namespace

// Two things happen when the model has been called at a predicted point: the step that led there is
// corrected, and the next point is predicted from the corrected state. The formulas are the paper's
// for noise and picture of total variance 1; multiplied by sqrt(1 + sigma^2) they hold for x
// itself, which makes the signal's factor 1 and the noise's factor sigma.
std::vector<Evaluation> uni_pc(const Step& step, Scale scale) {
  const std::size_t count = step.sigmas.size() - 1;
  if (count == 1) return {};
  const double end = final_sigma(step.sampler.method, step.sigmas);
  // Evaluations at the level of this step (0), one step before (1) ...
  const std::array<Expr, 4> found = {own(0), past(0), past(1), past(2)};
  Expr x = start();
  if (step.i > 0) {
    const Interval arrived = interval_of(step, step.i - 1, end, scale);
    const auto order = static_cast<std::size_t>(arrived.order);
    const std::array<double, 3> rho =
        order == 1 ? std::array<double, 3>{0.5} : solve(arrived, arrived.order);
    Expr correction = rho[order - 1] * (found[0] - found[1]);
    for (std::size_t i = 1; i < order; ++i) {
      correction = correction + (rho[i - 1] / arrived.ratio[i - 1]) * (found[i + 1] - found[1]);
    }
    x = interval_step(arrived, start(), found[1], correction);
  }
  const Interval ahead = interval_of(step, step.i, end, scale);
  const auto order = static_cast<std::size_t>(ahead.order);
  const std::array<double, 3> rho =
      order == 2 ? std::array<double, 3>{0.5} : solve(ahead, ahead.order - 1);
  Expr correction;
  for (std::size_t i = 1; i < order; ++i) {
    correction = correction + (rho[i - 1] / ahead.ratio[i - 1]) * (found[i] - found[0]);
  }
  return {corrected(step.sigma(), x, interval_step(ahead, x, found[0], correction))};
}

}  // namespace heddle::samplers::steps
