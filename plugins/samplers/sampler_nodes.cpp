#include "sampler_nodes.h"

#include "model_sampling.h"
#include "sampler_value.h"

namespace heddle::samplers {

void SamplerEulerAncestralCFGPP::execute(Context& ctx) {
  ctx[sampler] = sampler_record(
      {.name = "euler_ancestral_cfg_pp", .eta = ctx[eta], .noise_factor = ctx[s_noise]});
}

void SamplerDPMPP_2S_Ancestral::execute(Context& ctx) {
  ctx[sampler] =
      sampler_record({.name = "dpmpp_2s_ancestral", .eta = ctx[eta], .noise_factor = ctx[s_noise]});
}

void SamplerLMS::execute(Context& ctx) {
  ctx[sampler] = sampler_record({.name = "lms", .options = {{"order", double(ctx[order])}}});
}

void SamplerDPMPP_3M_SDE::execute(Context& ctx) {
  ctx[sampler] =
      sampler_record({.name = "dpmpp_3m_sde", .eta = ctx[eta], .noise_factor = ctx[s_noise]});
}

void SamplerDPMPP_2M_SDE::execute(Context& ctx) {
  const bool heun = std::string(ctx[solver_type]) == "heun";
  ctx[sampler] = sampler_record({.name = heun ? "dpmpp_2m_sde_heun" : "dpmpp_2m_sde",
                                 .eta = ctx[eta],
                                 .noise_factor = ctx[s_noise]});
}

void SamplerDPMPP_SDE::execute(Context& ctx) {
  ctx[sampler] = sampler_record({.name = "dpmpp_sde",
                                 .eta = ctx[eta],
                                 .noise_factor = ctx[s_noise],
                                 .options = {{"r", ctx[r]}}});
}

void SamplerDPMAdaptative::execute(Context& ctx) {
  ctx[sampler] = sampler_record({.name = "dpm_adaptive",
                                 .noise_factor = ctx[s_noise],
                                 .options = {{"order", double(ctx[order])},
                                             {"rtol", ctx[rtol]},
                                             {"atol", ctx[atol]},
                                             {"h_init", ctx[h_init]},
                                             {"pcoeff", ctx[pcoeff]},
                                             {"icoeff", ctx[icoeff]},
                                             {"dcoeff", ctx[dcoeff]},
                                             {"accept_safety", ctx[accept_safety]},
                                             {"eta", ctx[eta]}}});
}

void SamplerLCMUpscale::execute(Context& ctx) {
  ctx[sampler] = sampler_record(
      {.name = "lcm", .growth = Growth{ctx[scale_ratio], ctx[scale_steps], ctx[upscale_method]}});
}

void SamplerARVideo::execute(Context& ctx) {
  ctx[sampler] = sampler_record({.name = "lcm", .frames_per_block = ctx[num_frame_per_block]});
}

void SamplerER_SDE::execute(Context& ctx) {
  const std::string type = ctx[solver_type];
  SamplerChoice choice{.name = "er_sde",
                       .noise_factor = ctx[s_noise],
                       .options = {{"max_stage", double(ctx[max_stage])}}};
  if (type != "ER-SDE") {
    // The ODE is the reverse-time SDE without noise.
    const double fresh = type == "ODE" ? 0.0 : ctx[eta];
    if (fresh == 0.0) choice.noise_factor = 0.0;
    choice.options.emplace_back("scale_power", fresh + 1.0);
  }
  ctx[sampler] = sampler_record(choice);
}

void SamplerSASolver::execute(Context& ctx) {
  const NoiseLevels levels = model_sampling(ctx[model]).levels;
  ctx[sampler] =
      sampler_record({.name = "sa_solver",
                      .noise_factor = ctx[s_noise],
                      .options = {{"tau", ctx[eta]},
                                  {"tau_from", levels.percent_to_sigma(ctx[sde_start_percent])},
                                  {"tau_to", levels.percent_to_sigma(ctx[sde_end_percent])},
                                  {"predictor_order", double(ctx[predictor_order])},
                                  {"corrector_order", double(ctx[corrector_order])},
                                  {"use_pece", ctx[use_pece] ? 1.0 : 0.0},
                                  {"simple_order_2", ctx[simple_order_2] ? 1.0 : 0.0}}});
}

void SamplerSEEDS2::execute(Context& ctx) {
  const double phi = std::string(ctx[solver_type]) == "phi_2" ? 2.0 : 1.0;
  ctx[sampler] = sampler_record({.name = "seeds_2",
                                 .eta = ctx[eta],
                                 .noise_factor = ctx[s_noise],
                                 .options = {{"r", ctx[r]}, {"phi", phi}}});
}

void SamplerLCM::execute(Context& ctx) {
  ctx[sampler] = sampler_record(
      {.name = "lcm",
       .noise_factor = ctx[s_noise],
       .options = {{"s_noise_end", ctx[s_noise_end]}, {"noise_clip_std", ctx[noise_clip_std]}}});
}

void SamplerEulerCFGpp::execute(Context& ctx) {
  const bool alternative = std::string(ctx[version]) == "alternative";
  ctx[sampler] = sampler_record(
      {.name = "euler_cfg_pp", .options = {{"alternative", alternative ? 1.0 : 0.0}}});
}

}  // namespace heddle::samplers
