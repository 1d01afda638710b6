// The loop of heddle/diffusion/samplers.h: follows the evaluations of a sampler with tensors, on
// the device of the call. One call's thread.
#pragma once

#include <functional>
#include <vector>

#include <heddle/node.hpp>
#include <heddle/ops.hpp>

#include "noise_source.h"
#include "run_plan.h"

namespace heddle::samplers {

// A sum of any number of scaled tensors; terms with a coefficient of 0 are left out. Empty when
// nothing is left.
Tensor sum_of(Context& ctx, std::vector<ops::Term> terms);
Tensor or_zeros(Context& ctx, const Tensor& tensor, const Shape& shape);

// What the model sees in a point.
struct Seen {
  Tensor denoised;
  Tensor unconditioned;  // empty unless it was asked for
};
using Look = std::function<Seen(const Tensor& point, double sigma)>;

// The newest first, at most `most` of them.
class History {
 public:
  explicit History(std::size_t most) : most_(most) {}
  void push(const Tensor& tensor);
  // Throws where there are not so many.
  const Tensor& at(const heddle_sampler_term& term) const;
  std::size_t most() const { return most_; }
  std::vector<Tensor>& kept() { return kept_; }

 private:
  std::size_t most_;
  std::vector<Tensor> kept_;
};

class SamplerLoop {
 public:
  // `plan` says how much has to be kept. `x` is the first point.
  SamplerLoop(Context& ctx, Look look, NoiseSource noise, const SamplerPlan& plan, Tensor x);

  void step(const std::vector<Evaluation>& evaluations);
  // Runs an attempt, and gives its two results; the point is where it was.
  struct Results {
    Tensor next, lower;
  };
  Results attempt(const std::vector<Evaluation>& evaluations);
  // Goes on from `x` with so much fresh noise.
  void accept(const Tensor& x, double noise);

  const Tensor& result() const { return point_; }
  const Tensor& last_denoised() const { return last_denoised_; }

  // Between two steps or attempts.
  void archive(StateArchive& state);

 private:
  Tensor combine(const Combination& wanted);
  void look(const Evaluation& evaluation);
  void keep_slopes(const Tensor& x, const Seen& first, double sigma);

  Context& ctx_;
  Look look_;
  NoiseSource noise_;
  History denoised_, unconditioned_, slopes_, unconditioned_slopes_, draws_;
  Seen seen_;
  bool drew_ = false;  // in the last evaluation
  Tensor start_, point_, last_denoised_;
};

}  // namespace heddle::samplers
