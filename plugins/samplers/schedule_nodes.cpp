#include "schedule_nodes.h"

#include <algorithm>
#include <cmath>
#include <heddle/checked.hpp>

#include "family_schedules.h"
#include "gits_schedule.h"
#include "latent.h"
#include "schedule_kind.h"
#include "sigmas_value.h"
#include "tabled_schedule.h"
#include "user_error.h"

namespace heddle::samplers {
namespace {

// Runs a schedule of the numeric core and makes SIGMAS of it. Arguments that are fine one by one
// may give no levels together: a picture of such would be black.
template <class F>
Tensor made(Context& ctx, F&& schedule) {
  const Sigmas sigmas = with_user_errors(std::forward<F>(schedule));
  if (!std::ranges::all_of(sigmas, [](float sigma) { return std::isfinite(sigma); }))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "with these numbers some of the levels are infinite or no numbers. Give numbers "
                "nearer to the defaults.");
  return tensor_of(ctx, sigmas);
}

template <class Node>
int steps_of(Context& ctx) {
  return checked_cast<int>(ctx[Node::steps], "steps");
}

Tensor tabled(Context& ctx, const std::string& model_type, std::int64_t steps, double denoise) {
  const std::optional<StepTable> table = find_step_table(model_type);
  if (!table) throw Error(HEDDLE_NOT_FOUND, "there is no table of levels for '" + model_type + "'");
  return made(ctx,
              [&] { return tabled_sigmas(*table, checked_cast<int>(steps, "steps"), denoise); });
}

}  // namespace

void BasicScheduler::execute(Context& ctx) {
  const ModelSampling sampling = model_sampling(ctx[model]);
  const WholeSchedule whole = schedule_named(ctx[scheduler], sampling);
  ctx[sigmas] =
      made(ctx, [&] { return basic_sigmas(whole, steps_of<BasicScheduler>(ctx), ctx[denoise]); });
}

// Of a model that only infer() knows.
void BasicScheduler::infer(Infer& question) {
  const Value from = question.part(model, "");
  const auto name = question[scheduler];
  const auto count = question[steps];
  const auto part = question[denoise];
  if (!from.is(HEDDLE_KIND_MODEL) || !name || !count || !part) return;
  try {
    const ModelSampling sampling = model_sampling(from);
    const Sigmas levels = with_user_errors([&] {
      return basic_sigmas(schedule_named(*name, sampling), checked_cast<int>(*count, "steps"),
                          *part);
    });
    std::vector<Value> told;
    for (const float level : levels) told.push_back(value_of(double(level)));
    question.known(sigmas, kToldLevels, list_of(told));
    question.out(sigmas, "", HEDDLE_F32, {std::int64_t(levels.size())});
  } catch (const Error&) {
    // The run says it, with the node's name.
  }
}

void BetaSamplingScheduler::execute(Context& ctx) {
  const ModelSampling sampling = model_sampling(ctx[model]);
  ctx[sigmas] = made(ctx, [&] {
    return beta_sigmas(sampling.levels, steps_of<BetaSamplingScheduler>(ctx), ctx[alpha],
                       ctx[beta]);
  });
}

void KarrasScheduler::execute(Context& ctx) {
  ctx[sigmas] = made(ctx, [&] {
    return karras_sigmas(steps_of<KarrasScheduler>(ctx), ctx[sigma_min], ctx[sigma_max], ctx[rho]);
  });
}

void ExponentialScheduler::execute(Context& ctx) {
  ctx[sigmas] = made(ctx, [&] {
    return exponential_sigmas(steps_of<ExponentialScheduler>(ctx), ctx[sigma_min], ctx[sigma_max]);
  });
}

void PolyexponentialScheduler::execute(Context& ctx) {
  ctx[sigmas] = made(ctx, [&] {
    return polyexponential_sigmas(steps_of<PolyexponentialScheduler>(ctx), ctx[sigma_min],
                                  ctx[sigma_max], ctx[rho]);
  });
}

void LaplaceScheduler::execute(Context& ctx) {
  ctx[sigmas] = made(ctx, [&] {
    return laplace_sigmas(steps_of<LaplaceScheduler>(ctx), ctx[sigma_min], ctx[sigma_max], ctx[mu],
                          ctx[beta]);
  });
}

void VPScheduler::execute(Context& ctx) {
  ctx[sigmas] = made(ctx, [&] {
    return vp_sigmas(steps_of<VPScheduler>(ctx), ctx[beta_d], ctx[beta_min], ctx[eps_s]);
  });
}

void SDTurboScheduler::execute(Context& ctx) {
  const ModelSampling sampling = model_sampling(ctx[model]);
  ctx[sigmas] = made(ctx, [&] {
    return turbo_sigmas(sampling.levels, steps_of<SDTurboScheduler>(ctx), ctx[denoise]);
  });
}

void AlignYourStepsScheduler::execute(Context& ctx) {
  ctx[sigmas] = tabled(ctx, ctx[model_type], ctx[steps], ctx[denoise]);
}

void OptimalStepsScheduler::execute(Context& ctx) {
  ctx[sigmas] = tabled(ctx, ctx[model_type], ctx[steps], ctx[denoise]);
}

void GITSScheduler::execute(Context& ctx) {
  ctx[sigmas] = made(
      ctx, [&] { return gits_sigmas(ctx[coeff], steps_of<GITSScheduler>(ctx), ctx[denoise]); });
}

void LTXVScheduler::execute(Context& ctx) {
  const double tokens = ctx.has(latent) ? tokens_of(pictures_of(ctx[latent]).shape()) : kLtxvTokens;
  const double mu = ltxv_mu(tokens, ctx[base_shift], ctx[max_shift]);
  std::optional<double> end;
  if (ctx[stretch]) end = ctx[terminal];
  ctx[sigmas] = made(ctx, [&] { return ltxv_sigmas(steps_of<LTXVScheduler>(ctx), mu, end); });
}

void Flux2Scheduler::execute(Context& ctx) {
  ctx[sigmas] = made(ctx, [&] {
    return flux2_sigmas(steps_of<Flux2Scheduler>(ctx), double(ctx[width]) * double(ctx[height]));
  });
}

void Ideogram4Scheduler::execute(Context& ctx) {
  ctx[sigmas] = made(ctx, [&] {
    return ideogram4_sigmas(steps_of<Ideogram4Scheduler>(ctx),
                            double(ctx[width]) * double(ctx[height]), ctx[mu], ctx[std]);
  });
}

}  // namespace heddle::samplers
