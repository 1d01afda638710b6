#include "sampler_loop.h"

#include <algorithm>

namespace heddle::samplers {
namespace {

bool draws(const Evaluation& evaluation) {
  const auto fresh = [](const heddle_sampler_term& term) {
    return term.of == HEDDLE_SAMPLER_NOISE && term.age == 0;
  };
  return std::ranges::any_of(evaluation.next, fresh) ||
         std::ranges::any_of(evaluation.start, fresh);
}

const char* name_of(std::int32_t of) {
  switch (of) {
    case HEDDLE_SAMPLER_DENOISED:
      return "evaluation";
    case HEDDLE_SAMPLER_UNCONDITIONED:
      return "evaluation without conditioning";
    case HEDDLE_SAMPLER_NOISE:
      return "draw of noise";
    default:
      return "slope";
  }
}

}  // namespace

Tensor sum_of(Context& ctx, std::vector<ops::Term> terms) {
  std::erase_if(terms, [](const ops::Term& term) { return term.coefficient == 0.0; });
  if (terms.empty()) return {};
  while (terms.size() > 4) {
    const std::vector<ops::Term> first(terms.begin(), terms.begin() + 4);
    terms.erase(terms.begin(), terms.begin() + 3);
    terms.front() = {1.0, ops::combine(ctx, first)};
  }
  if (terms.size() == 1 && terms[0].coefficient == 1.0) return terms[0].x;
  return ops::combine(ctx, terms);
}

Tensor or_zeros(Context& ctx, const Tensor& tensor, const Shape& shape) {
  if (tensor) return tensor;
  const Tensor zeros = ctx.make(shape, HEDDLE_F32);
  ops::fill(ctx, zeros, 0.0);
  return zeros;
}

void History::push(const Tensor& tensor) {
  if (most_ == 0) return;
  kept_.insert(kept_.begin(), tensor);
  if (kept_.size() > most_) kept_.pop_back();
}

const Tensor& History::at(const heddle_sampler_term& term) const {
  if (term.age < kept_.size() && kept_[term.age]) return kept_[term.age];
  throw Error(HEDDLE_INTERNAL, std::string("the sampler wants ") + name_of(term.of) + " number " +
                                   std::to_string(term.age) + " of " +
                                   std::to_string(kept_.size()) +
                                   " that were made. Its formula for this step is wrong.");
}

SamplerLoop::SamplerLoop(Context& ctx, Look look, NoiseSource noise, const SamplerPlan& plan,
                         Tensor x)
    : ctx_(ctx),
      look_(std::move(look)),
      noise_(std::move(noise)),
      denoised_(kept_of(plan, HEDDLE_SAMPLER_DENOISED)),
      unconditioned_(kept_of(plan, HEDDLE_SAMPLER_UNCONDITIONED)),
      slopes_(kept_of(plan, HEDDLE_SAMPLER_SLOPE)),
      unconditioned_slopes_(kept_of(plan, HEDDLE_SAMPLER_UNCONDITIONED_SLOPE)),
      draws_(kept_of(plan, HEDDLE_SAMPLER_NOISE)),
      start_(x),
      point_(std::move(x)) {}

void SamplerLoop::look(const Evaluation& evaluation) {
  seen_ = look_(point_, evaluation.sigma);
  denoised_.push(seen_.denoised);
  unconditioned_.push(seen_.unconditioned);
  drew_ = draws(evaluation);
  if (drew_) draws_.push(noise_.draw(evaluation));
}

void SamplerLoop::step(const std::vector<Evaluation>& evaluations) {
  const Tensor x = start_;
  Seen first;
  for (const Evaluation& evaluation : evaluations) {
    look(evaluation);
    if (!first.denoised) first = seen_;
    const Tensor next = combine(evaluation.next);
    if (evaluation.after == HEDDLE_SAMPLER_CORRECT_START) start_ = combine(evaluation.start);
    if (evaluation.after == HEDDLE_SAMPLER_MOVE_START) start_ = next;
    point_ = next;
  }
  if (!first.denoised) return;
  keep_slopes(x, first, evaluations.front().sigma);
  last_denoised_ = first.denoised;
}

void SamplerLoop::keep_slopes(const Tensor& x, const Seen& first, double sigma) {
  const double inverse = 1.0 / sigma;
  if (slopes_.most() > 0)
    slopes_.push(ops::combine(ctx_, {{inverse, x}, {-inverse, first.denoised}}));
  if (unconditioned_slopes_.most() > 0)
    unconditioned_slopes_.push(ops::combine(ctx_, {{inverse, x}, {-inverse, first.unconditioned}}));
}

SamplerLoop::Results SamplerLoop::attempt(const std::vector<Evaluation>& evaluations) {
  Results results;
  denoised_ = History(evaluations.size());
  for (const Evaluation& evaluation : evaluations) {
    look(evaluation);
    if (!results.next) last_denoised_ = seen_.denoised;
    results.next = combine(evaluation.next);
    if (!evaluation.start.empty()) results.lower = combine(evaluation.start);
    point_ = results.next;
  }
  point_ = start_;
  return results;
}

void SamplerLoop::accept(const Tensor& x, double noise) {
  start_ = noise == 0.0 ? x : ops::combine(ctx_, {{1.0, x}, {noise, noise_.draw({})}});
  point_ = start_;
}

void SamplerLoop::archive(StateArchive& state) {
  state("start", start_);
  state("point", point_);
  state("last_denoised", last_denoised_);
  state("denoised", denoised_.kept());
  state("unconditioned", unconditioned_.kept());
  state("slopes", slopes_.kept());
  state("unconditioned_slopes", unconditioned_slopes_.kept());
  state("draws", draws_.kept());
  noise_.archive(state);
}

Tensor SamplerLoop::combine(const Combination& wanted) {
  std::vector<ops::Term> terms;
  for (const heddle_sampler_term& term : wanted) {
    if (term.factor == 0.0) continue;
    const auto kept = [&]() -> const Tensor& {
      switch (term.of) {
        case HEDDLE_SAMPLER_DENOISED:
          return denoised_.at(term);
        case HEDDLE_SAMPLER_UNCONDITIONED:
          return unconditioned_.at(term);
        case HEDDLE_SAMPLER_SLOPE:
          return slopes_.at(term);
        case HEDDLE_SAMPLER_UNCONDITIONED_SLOPE:
          return unconditioned_slopes_.at(term);
        case HEDDLE_SAMPLER_NOISE:
          // Of an evaluation that draws nothing, number 1 is the newest.
          return draws_.at({term.of, drew_ ? term.age : term.age - 1, term.factor});
        default:
          return start_;
      }
    };
    terms.push_back({term.factor, kept()});
  }
  return or_zeros(ctx_, sum_of(ctx_, std::move(terms)), start_.shape());
}

}  // namespace heddle::samplers
