// A small algebra of symbols for the formulas of samplers, so that each reads as it does in its
// paper. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "samplers.h"

namespace heddle::samplers::steps {

// A linear combination of what a step knows. Unlike in a Combination, evaluations are named by when
// they are made: own(k) in this step, past(k) in steps before, 0 the last.
class Expr {
 public:
  Expr() = default;

  // The terms as the evaluation number `k` of a step sees them, k the last one made.
  Combination seen_by(std::size_t k) const;

 private:
  enum class Symbol { kStart, kOwn, kPast, kOwnPlain, kPastPlain, kSlope, kPlainSlope, kNoise };
  struct Part {
    Symbol symbol;
    std::size_t index;
    double factor;
  };
  explicit Expr(Symbol symbol, std::size_t index = 0, double factor = 1.0)
      : parts_{{symbol, index, factor}} {}
  Expr& add(double factor, const Expr& other);

  friend Expr operator+(Expr a, const Expr& b);
  friend Expr operator-(Expr a, const Expr& b);
  friend Expr operator*(double factor, const Expr& a);
  friend Expr start();
  friend Expr own(std::size_t k);
  friend Expr past(std::size_t k);
  friend Expr own_plain(std::size_t k);
  friend Expr past_plain(std::size_t k);
  friend Expr earlier_slope(std::size_t k);
  friend Expr earlier_plain_slope(std::size_t k);
  friend Expr fresh_noise(double factor);
  friend Expr earlier_noise(std::size_t k);
  friend Expr unused_noise();

  std::vector<Part> parts_;
};

Expr operator+(Expr a, const Expr& b);
Expr operator-(Expr a, const Expr& b);
Expr operator*(double factor, const Expr& a);

Expr start();
Expr own(std::size_t k);
Expr past(std::size_t k);
// The same evaluations without the positive conditioning.
Expr own_plain(std::size_t k);
Expr past_plain(std::size_t k);
// Of the step before this one (0) ...
Expr earlier_slope(std::size_t k);
Expr earlier_plain_slope(std::size_t k);
// A draw for this evaluation, nothing for a factor of 0; the draws before it, 0 the last.
Expr fresh_noise(double factor);
Expr earlier_noise(std::size_t k);
// A draw that adds nothing: the next one is then what it is in ComfyUI.
Expr unused_noise();

// The evaluation number `k` of a step, at level `sigma`, and where it leads.
Evaluation inner(std::size_t k, double sigma, const Expr& next);
Evaluation last(std::size_t k, double sigma, const Expr& next);
Evaluation corrected(std::size_t k, double sigma, const Expr& start, const Expr& next);

// dx / dsigma of the probability flow at a point where the model found `denoised`.
Expr slope(const Expr& point, const Expr& denoised, double sigma);
// x moved along the line from the noisy state to `denoised`, from level `from` to level `to`.
Expr towards(const Expr& denoised, double from, double to);
// The step that ends at the clean picture.
std::vector<Evaluation> to_denoised(const Step& step);
// Euler's step: the sum of slope and length.
std::vector<Evaluation> euler_step(const Step& step);

// Where a step with fresh noise lands before the noise is added, and how much is added.
struct Landing {
  double down = 0.0;
  double up = 0.0;
  double rescale = 1.0;  // of the landed x, in flows
};
// k-diffusion's rule for x = picture + sigma noise: the variances of `down` and `up` add up to
// `to`.
Landing ancestral(double from, double to, double eta);
// The rule of the process, flows included.
Landing land(const Step& step);
Expr landed(const Step& step, const Landing& landing, const Expr& x);

// (e^y - 1) / y, and (phi1(y) - 1) / y.
double phi1(double y);
double phi2(double y);

}  // namespace heddle::samplers::steps
