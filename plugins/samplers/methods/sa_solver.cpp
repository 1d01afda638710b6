// SA-Solver (Xue et al. 2023): stochastic Adams methods, a predictor and a corrector, with noise in
// a part of the schedule. With PECE the corrected state is evaluated again.
#include <algorithm>
#include <array>
#include <numbers>

#include "plugins/samplers/slope_weights.h"

namespace heddle::samplers::steps {
namespace {

constexpr std::size_t kQuadrature = 64;

// Gauss-Legendre nodes and weights on [-1, 1], by Newton's method on the Legendre polynomial.
struct Quadrature {
  std::array<double, kQuadrature> nodes{}, weights{};

  Quadrature() {
    constexpr double n = kQuadrature;
    for (std::size_t k = 0; k < kQuadrature; ++k) {
      double x = std::cos(std::numbers::pi * (double(k) + 0.75) / (n + 0.5));
      double derivative = 1.0;
      for (int turn = 0; turn < 20; ++turn) {
        double before = 1.0, value = x;
        for (double degree = 2.0; degree <= n; degree += 1.0) {
          const double next = ((2.0 * degree - 1.0) * x * value - (degree - 1.0) * before) / degree;
          before = value;
          value = next;
        }
        derivative = n * (x * value - before) / (x * x - 1.0);
        x -= value / derivative;
      }
      nodes[k] = x;
      weights[k] = 2.0 / ((1.0 - x * x) * derivative * derivative);
    }
  }
};

class SaSolver {
 public:
  SaSolver(const Step& step, bool pece) : step_(step), pece_(pece) {
    const heddle_sampler_run& run = step.run;
    const auto level = [&run](double percent) { return run.percent_to_sigma(run.levels, percent); };
    tau_from_ = step.option("tau_from", level(0.2));
    tau_to_ = step.option("tau_to", level(0.8));
  }

  std::vector<Evaluation> evaluations() const {
    const std::size_t i = step_.i;
    const bool twice = calls(i) == 2;
    const Expr x = corrected_state();
    const std::size_t last_call = twice ? 1 : 0;
    Expr next = own(last_call);
    if (step_.next() != 0.0)
      next = adams(x, i, predictor_order(i), predictor_nodes(), twice) +
             fresh_noise(noise_at(i + 1) * step_.run.noise_factor);
    // The next corrector starts from the corrected state again.
    const bool keeps = step_.i + 1 < step_.count() && corrector_order(i + 1) > 0;
    std::vector<Evaluation> made;
    if (twice) made.push_back(inner(0, step_.sigma(), x));
    made.push_back(keeps ? corrected(last_call, step_.sigma(), x, next)
                         : last(last_call, step_.sigma(), next));
    return made;
  }

 private:
  bool to_zero() const { return step_.sigmas().back() == 0.0f; }
  double level(std::size_t i) const { return step_.run.sigmas[i]; }
  double lambda(std::size_t i) const { return step_.lambda(level(i)); }
  // How much of the noise is fresh when a level is reached. Levels are compared in single
  // precision.
  double tau(std::size_t i) const {
    const float sigma = step_.run.sigmas[i];
    const bool inside = float(tau_from_) >= sigma && sigma >= float(tau_to_);
    return inside ? step_.option("tau", 1.0) : 0.0;
  }
  // Deviation of the noise of the predictor to level i.
  double noise_at(std::size_t i) const {
    const double rate = tau(i) * tau(i);
    return level(i) * std::sqrt(-std::expm1(-2.0 * rate * (lambda(i) - lambda(i - 1))));
  }

  std::size_t order(const char* name, double usual, std::size_t i, std::size_t to_end) const {
    const auto wanted =
        static_cast<std::size_t>(std::min(6.0, std::max(0.0, step_.option(name, usual))));
    const std::size_t there = std::min(wanted, i + 1);
    return to_zero() ? std::min(there, to_end) : there;
  }
  std::size_t predictor_order(std::size_t i) const {
    return order("predictor_order", 3.0, i, step_.count() - 1 - i);
  }
  std::size_t corrector_order(std::size_t i) const {
    if (i == 0 || (level(i + 1) == 0.0 && !pece_)) return 0;
    return order("corrector_order", 4.0, i, step_.count() - i);
  }
  std::size_t calls(std::size_t i) const { return pece_ && corrector_order(i) > 0 ? 2 : 1; }

  // D at the level of step i - back, as good as it is known before or after this step's second
  // call.
  Expr denoised(std::size_t back, bool second_call) const {
    if (back == 0) return own(second_call ? 1 : 0);
    std::size_t age = 0;
    for (std::size_t k = 1; k < back; ++k) age += calls(step_.i - k);
    return past(age);
  }

  std::vector<double> predictor_nodes() const {
    std::vector<double> nodes;
    for (std::size_t k = 0; k < predictor_order(step_.i); ++k) nodes.push_back(lambda(step_.i - k));
    return nodes;
  }

  // From x at level `from` to the next, by the exact integral of the polynomial through the
  // evaluations at `nodes`, which begin with this step's.
  Expr adams(const Expr& x, std::size_t from, std::size_t order, const std::vector<double>& nodes,
             bool second_call) const {
    const std::size_t to = from + 1;
    const double rate = tau(to) * tau(to);
    const double h = lambda(to) - lambda(from);
    const double grow = 1.0 + rate;
    const double alpha = step_.alpha(level(to));
    std::vector<double> weights(order);
    if (step_.option("simple_order_2", 0.0) != 0.0 && order == 2) {
      const double whole = -std::expm1(-h * grow);
      // Of the second node or, for a corrector, whose first node is the end, of the first.
      const bool predicts = from == step_.i;
      const double one = predicts ? 0.5 * grow * h * h / (nodes[1] - lambda(from)) : 0.5 * grow * h;
      weights = predicts ? std::vector{whole - one, one} : std::vector{one, whole - one};
    } else {
      static const Quadrature rule;
      for (std::size_t k = 0; k < kQuadrature; ++k) {
        const double at = lambda(from) + 0.5 * h * (rule.nodes[k] + 1.0);
        const double density =
            0.5 * h * rule.weights[k] * grow * std::exp(grow * (at - lambda(to)));
        for (std::size_t j = 0; j < order; ++j) weights[j] += density * lagrange(nodes, j, at);
      }
    }
    Expr result = (level(to) / level(from) * std::exp(-rate * h)) * x;
    for (std::size_t j = 0; j < order; ++j)
      result = result + (alpha * weights[j]) * denoised(j, second_call);
    return result;
  }

  // The state at this step's level: corrected by the evaluation there, with the noise that led to
  // it.
  Expr corrected_state() const {
    const std::size_t i = step_.i;
    const std::size_t order = corrector_order(i);
    if (order == 0) return start();
    std::vector<double> nodes;
    for (std::size_t k = 0; k < order; ++k) nodes.push_back(lambda(i - k));
    const double deviation = noise_at(i) * step_.run.noise_factor;
    const Expr x = adams(start(), i - 1, order, nodes, false);
    return deviation == 0.0 ? x : x + deviation * earlier_noise(0);
  }

  const Step& step_;
  bool pece_;
  double tau_from_, tau_to_;
};

std::vector<Evaluation> sa_solver(const Step& step) {
  return SaSolver(step, step.option("use_pece", 0.0) != 0.0).evaluations();
}

std::vector<Evaluation> sa_solver_pece(const Step& step) {
  return SaSolver(step, true).evaluations();
}

constexpr std::uint32_t kSaFlags = HEDDLE_SAMPLER_DRAWS_NOISE | HEDDLE_SAMPLER_FINITE_FIRST_LEVEL;
// tau_from and tau_to are noise levels.
const std::vector<heddle_sampler_option_desc> kSaOptions = {sampler_option("tau", 0, 10),
                                                            sampler_option("tau_from", 0, HUGE_VAL),
                                                            sampler_option("tau_to", 0, HUGE_VAL),
                                                            sampler_option("predictor_order", 1, 6),
                                                            sampler_option("corrector_order", 0, 6),
                                                            sampler_option("use_pece", 0, 1),
                                                            sampler_option("simple_order_2", 0, 1)};
const Registered kSaSolver({.name = "sa_solver",
                            .place = 380,
                            .step = &sa_solver,
                            .flags = kSaFlags,
                            .options = kSaOptions});
const Registered kSaSolverPece({.name = "sa_solver_pece",
                                .place = 390,
                                .step = &sa_solver_pece,
                                .flags = kSaFlags,
                                .options = kSaOptions});

}  // namespace
}  // namespace heddle::samplers::steps
