#include "second_look.h"

namespace heddle::samplers {
namespace {

constexpr std::size_t kNegativeOfPlan = 1;

// The negative conditioning, seen by itself.
Guide guide_again(const GuidePlan& plan) {
  const Guide& guide = plan.guide();
  return {.model = without_patches(guide.negative_model ? guide.negative_model : guide.model),
          .positive = plan.list(kNegativeOfPlan),
          .negative = {},
          .is_of_negative = true};
}

}  // namespace

std::unique_ptr<SecondLook> SecondLook::of(Context& ctx, const GuidePlan& plan,
                                           const ModelSampling& sampling, const Shape& shape,
                                           const Sigmas& levels) {
  if (!plan.looks_again() || !plan.guide().negative) return nullptr;
  return std::make_unique<SecondLook>(ctx, guide_again(plan), sampling, shape, levels);
}

SecondLook::SecondLook(Context& ctx, const Guide& guide, const ModelSampling& sampling,
                       const Shape& shape, const Sigmas& levels)
    : ctx_(ctx),
      shape_(shape),
      memory_(ctx),
      plan_(guide, sampling, false),
      denoiser_(ctx, plan_, sampling, shape, levels, false) {}

void SecondLook::saw(const Value& made) {
  if (is_new_) return;
  const Value told = made.field(kAttended);
  if (!told) throw Error(HEDDLE_INTERNAL, "the model does not tell what its middle attends to");
  const Tensor tensor = told.as<Tensor>();
  attended_.resize(std::size_t(tensor.count()));
  read_to<float>(ctx_, tensor, attended_);
  is_new_ = true;
}

std::pmr::vector<float> SecondLook::look(std::span<const float> x, double sigma) {
  is_new_ = false;
  const Tensor point = ctx_.upload(shape_, HEDDLE_F32, x.data());
  const Seen seen = denoiser_(point, sigma);
  std::pmr::vector<float> values(x.size(), &memory_);
  read_to<float>(ctx_, seen.denoised, values);
  return values;
}

void SecondLook::archive(StateArchive& state) {
  state("attended", attended_);
  denoiser_.archive(state);
}

}  // namespace heddle::samplers
