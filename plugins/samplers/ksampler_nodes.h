// KSampler and KSamplerAdvanced: everything about a run in one node. Stateless.
#pragma once

#include <heddle/diffusion/noise_schedules.h>
#include <heddle/diffusion/samplers.h>
#include <heddle/node.hpp>

namespace heddle::samplers {

inline constexpr Widget kSteps{.number = 20, .min = 1, .max = 10000};
inline constexpr Widget kCfg{.number = 8, .min = 0, .max = 100, .step = 0.1, .round = 0.01};
inline constexpr Widget kSamplerNames{.source = HEDDLE_SAMPLERS, .kind = HEDDLE_WIDGET_CHOICE};
inline constexpr Widget kScheduleNames{.source = HEDDLE_NOISE_SCHEDULES,
                                       .kind = HEDDLE_WIDGET_CHOICE};
inline constexpr Widget kDenoise{.number = 1, .min = 0, .max = 1, .step = 0.01};

struct KSampler {
  static constexpr Info info{"KSampler", 1, "KSampler", "model/sampling",
                             "Draws: takes the noise out of the latent, step by step, guided by "
                             "the two conditionings."};
  static constexpr Input<Value> model{"model", 0, "The diffusion model.", "MODEL"};
  static constexpr Input<std::uint64_t> seed{"seed", Widget{}, "Decides the noise."};
  static constexpr Input<std::int64_t> steps{"steps", kSteps, "How many times the model is asked."};
  static constexpr Input<double> cfg{
      "cfg", kCfg, "How strongly to follow the positive text; 1 ignores the negative one."};
  static constexpr Input<std::string> sampler_name{"sampler_name", kSamplerNames};
  static constexpr Input<std::string> scheduler{"scheduler", kScheduleNames};
  static constexpr Input<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr Input<Value> latent_image{"latent_image", 0, "", "LATENT"};
  static constexpr Input<double> denoise{
      "denoise", kDenoise, "The part of the way that is drawn; less keeps more of the latent."};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(model, seed, steps, cfg, sampler_name, scheduler,
                                              positive, negative, latent_image, denoise, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct KSamplerAdvanced {
  static constexpr const char* kSwitch[] = {"enable", "disable", nullptr};
  static constexpr const char* kLeftover[] = {"disable", "enable", nullptr};
  static constexpr const char* kAdvanced = R"({"advanced": true})";

  static constexpr Info info{"KSamplerAdvanced", 1, "KSampler (Advanced)", "model/sampling",
                             "Draws a part of a schedule, with or without adding noise first."};
  static constexpr Input<Value> model{"model", 0, "", "MODEL"};
  static constexpr Input<std::string> add_noise{"add_noise",
                                                Widget{.choices = kSwitch, .extra = kAdvanced}};
  static constexpr Input<std::uint64_t> noise_seed{"noise_seed", Widget{}};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> cfg{"cfg", kCfg};
  static constexpr Input<std::string> sampler_name{"sampler_name", kSamplerNames};
  static constexpr Input<std::string> scheduler{"scheduler", kScheduleNames};
  static constexpr Input<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr Input<Value> latent_image{"latent_image", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> start_at_step{"start_at_step",
                                                     Widget{.max = 10000, .extra = kAdvanced}};
  static constexpr Input<std::int64_t> end_at_step{
      "end_at_step", Widget{.number = 10000, .max = 10000, .extra = kAdvanced}};
  static constexpr Input<std::string> leftover{"return_with_leftover_noise",
                                               Widget{.choices = kLeftover, .extra = kAdvanced}};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(model, add_noise, noise_seed, steps, cfg, sampler_name, scheduler, positive,
                    negative, latent_image, start_at_step, end_at_step, leftover, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
