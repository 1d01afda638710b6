// UniPC (Zhao et al. 2023).
#include <algorithm>
#include <array>

#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

constexpr double kEnd = 0.001;

double end_of(double last) { return last == 0.0 ? kEnd : last; }

enum class Scale { kStep, kExpm1 };  // B(h) = h, or e^h - 1: bh1 and bh2

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
  const std::size_t count = step.count();
  const auto level = [&](std::size_t index) {
    return index == count ? end : static_cast<double>(step.run.sigmas[index]);
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

// Two things happen when the model has been called at a predicted point: the step that led there is
// corrected, and the next point is predicted from the corrected state. The formulas are the paper's
// for noise and picture of total variance 1; multiplied by sqrt(1 + sigma^2) they hold for x
// itself, which makes the signal's factor 1 and the noise's factor sigma.
std::vector<Evaluation> uni_pc(const Step& step, Scale scale) {
  const std::size_t count = step.count();
  if (count == 1) return {};
  const double end = end_of(step.sigmas().back());
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
  return {corrected(0, step.sigma(), x, interval_step(ahead, x, found[0], correction))};
}

std::vector<Evaluation> bh1(const Step& step) { return uni_pc(step, Scale::kStep); }

std::vector<Evaluation> bh2(const Step& step) { return uni_pc(step, Scale::kExpm1); }

const Registered kUniPc({.name = "uni_pc",
                         .place = 420,
                         .step = &bh1,
                         .flags = HEDDLE_SAMPLER_DISCARDS_PENULTIMATE,
                         .end = &end_of});
const Registered kUniPcBh2({.name = "uni_pc_bh2",
                            .place = 430,
                            .step = &bh2,
                            .flags = HEDDLE_SAMPLER_DISCARDS_PENULTIMATE,
                            .end = &end_of});

}  // namespace
}  // namespace heddle::samplers::steps
