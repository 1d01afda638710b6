// What the negative conditioning predicts of another state than the one that is drawn, in the same
// evaluation: self-attention guidance asks for it. A denoiser of its own, with sessions of its own
// of the same model. One call's thread.
#pragma once

#include <memory>
#include <span>

#include "denoiser.h"

namespace heddle::samplers {

class SecondLook {
 public:
  // As a Denoiser is made; null where no patch of the plan looks again. Throws unsupported where
  // the model's outputs do not say what is attended to.
  static std::unique_ptr<SecondLook> of(Context& ctx, const GuidePlan& plan,
                                        const ModelSampling& sampling, const Shape& shape,
                                        const Sigmas& levels);
  SecondLook(Context& ctx, const Guide& guide, const ModelSampling& sampling, const Shape& shape,
             const Sigmas& levels);

  Denoiser& denoiser() { return denoiser_; }
  // What the model made of a set of the negative conditioning. The first one of an evaluation
  // counts.
  void saw(const Value& made);
  std::span<const float> attended() const { return attended_; }
  // In each evaluation once: every patch that looks again has one of its own.
  std::pmr::vector<float> look(std::span<const float> x, double sigma);
  void archive(StateArchive& state);

 private:
  Context& ctx_;
  const Shape shape_;
  HostMemory memory_;
  GuidePlan plan_;
  Denoiser denoiser_;
  std::pmr::vector<float> attended_{&memory_};
  bool is_new_ = false;  // of this evaluation
};

}  // namespace heddle::samplers
