// Samplers with their numbers: a node for each that ComfyUI has one for. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

namespace sampler_widgets {
inline constexpr const char* kAdvanced = R"({"advanced": true, "round": false})";
inline constexpr const char* kAdvancedOnly = R"({"advanced": true})";
inline constexpr const char* kAdvancedUnset = R"({"advanced": true, "default": null})";

constexpr Widget plain(double number, double max) {
  return {.number = number, .max = max, .step = 0.01, .extra = R"({"round": false})"};
}
constexpr Widget advanced(double number, double max = 100) {
  return {.number = number, .max = max, .step = 0.01, .extra = kAdvanced};
}
constexpr Widget percent(double number) {
  return {.number = number, .max = 1, .step = 0.001, .extra = kAdvancedOnly};
}
// Where noise is drawn in ComfyUI. Here it is the host, whatever is chosen: a device changes no
// picture.
inline constexpr const char* kDevices[] = {"gpu", "cpu", nullptr};
inline constexpr Widget kNoiseDevice{.choices = kDevices, .extra = kAdvancedOnly, .type = "COMBO"};
}  // namespace sampler_widgets

struct SamplerEulerAncestralCFGPP {
  static constexpr Info info{"SamplerEulerAncestralCFGPP",
                             1,
                             "SamplerEulerAncestralCFG++",
                             "sampling/custom_sampling/samplers",
                             "euler_ancestral_cfg_pp with its two numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> eta{"eta", sampler_widgets::plain(1, 1)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::plain(1, 10)};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(eta, s_noise, sampler);
  static void execute(Context& ctx);
};

struct SamplerDPMPP_2S_Ancestral {
  static constexpr Info info{"SamplerDPMPP_2S_Ancestral",
                             1,
                             "SamplerDPMPP_2S_Ancestral",
                             "sampling/custom_sampling/samplers",
                             "dpmpp_2s_ancestral with its two numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> eta{"eta", sampler_widgets::plain(1, 100)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::plain(1, 100)};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(eta, s_noise, sampler);
  static void execute(Context& ctx);
};

struct SamplerLMS {
  static constexpr Info info{"SamplerLMS",          1,
                             "SamplerLMS",          "model/sampling/samplers",
                             "lms with its order.", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> order{
      "order", Widget{.number = 4, .min = 1, .max = 100, .extra = sampler_widgets::kAdvancedOnly}};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(order, sampler);
  static void execute(Context& ctx);
};

struct SamplerDPMPP_3M_SDE {
  static constexpr Info info{"SamplerDPMPP_3M_SDE",
                             1,
                             "SamplerDPMPP_3M_SDE",
                             "model/sampling/samplers",
                             "dpmpp_3m_sde with its numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> eta{"eta", sampler_widgets::advanced(1)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::advanced(1)};
  static constexpr Input<std::string> noise_device{"noise_device", sampler_widgets::kNoiseDevice};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(eta, s_noise, noise_device, sampler);
  static void execute(Context& ctx);
};

struct SamplerDPMPP_2M_SDE {
  static constexpr const char* kTypes[] = {"midpoint", "heun", nullptr};
  static constexpr Info info{"SamplerDPMPP_2M_SDE",
                             1,
                             "SamplerDPMPP_2M_SDE",
                             "model/sampling/samplers",
                             "dpmpp_2m_sde or dpmpp_2m_sde_heun with its numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> solver_type{"solver_type",
                                                  Widget{.choices = kTypes, .type = "COMBO"}};
  static constexpr Input<double> eta{"eta", sampler_widgets::advanced(1)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::advanced(1)};
  static constexpr Input<std::string> noise_device{"noise_device", sampler_widgets::kNoiseDevice};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(solver_type, eta, s_noise, noise_device, sampler);
  static void execute(Context& ctx);
};

struct SamplerDPMPP_SDE {
  static constexpr Info info{"SamplerDPMPP_SDE",
                             1,
                             "SamplerDPMPP_SDE",
                             "model/sampling/samplers",
                             "dpmpp_sde with its numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> eta{"eta", sampler_widgets::advanced(1)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::advanced(1)};
  static constexpr Input<double> r{"r", sampler_widgets::advanced(0.5)};
  static constexpr Input<std::string> noise_device{"noise_device", sampler_widgets::kNoiseDevice};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(eta, s_noise, r, noise_device, sampler);
  static void execute(Context& ctx);
};

struct SamplerDPMAdaptative {
  static constexpr Info info{"SamplerDPMAdaptative",
                             1,
                             "SamplerDPMAdaptative",
                             "model/sampling/samplers",
                             "dpm_adaptive with its tolerances and the numbers of its step size.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> order{
      "order", Widget{.number = 3, .min = 2, .max = 3, .extra = sampler_widgets::kAdvancedOnly}};
  static constexpr Input<double> rtol{"rtol", sampler_widgets::advanced(0.05)};
  static constexpr Input<double> atol{"atol", sampler_widgets::advanced(0.0078)};
  static constexpr Input<double> h_init{"h_init", sampler_widgets::advanced(0.05)};
  static constexpr Input<double> pcoeff{"pcoeff", sampler_widgets::advanced(0)};
  static constexpr Input<double> icoeff{"icoeff", sampler_widgets::advanced(1)};
  static constexpr Input<double> dcoeff{"dcoeff", sampler_widgets::advanced(0)};
  static constexpr Input<double> accept_safety{"accept_safety", sampler_widgets::advanced(0.81)};
  static constexpr Input<double> eta{"eta", sampler_widgets::advanced(0)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::advanced(1)};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(order, rtol, atol, h_init, pcoeff, icoeff, dcoeff,
                                              accept_safety, eta, s_noise, sampler);
  static void execute(Context& ctx);
};

struct SamplerER_SDE {
  static constexpr const char* kTypes[] = {"ER-SDE", "Reverse-time SDE", "ODE", nullptr};
  static constexpr Info info{"SamplerER_SDE",
                             1,
                             "SamplerER_SDE",
                             "model/sampling/samplers",
                             "er_sde, a plain reverse-time SDE or the ODE, with their numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> solver_type{"solver_type",
                                                  Widget{.choices = kTypes, .type = "COMBO"}};
  static constexpr Input<std::int64_t> max_stage{
      "max_stage",
      Widget{.number = 3, .min = 1, .max = 3, .extra = sampler_widgets::kAdvancedOnly}};
  static constexpr Input<double> eta{"eta", sampler_widgets::advanced(1, 10)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::advanced(1)};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(solver_type, max_stage, eta, s_noise, sampler);
  static void execute(Context& ctx);
};

struct SamplerSASolver {
  static constexpr Info info{"SamplerSASolver",
                             1,
                             "SamplerSASolver",
                             "model/sampling/samplers",
                             "sa_solver with its numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> eta{"eta", sampler_widgets::advanced(1, 10)};
  static constexpr Input<double> sde_start_percent{"sde_start_percent",
                                                   sampler_widgets::percent(0.2)};
  static constexpr Input<double> sde_end_percent{"sde_end_percent", sampler_widgets::percent(0.8)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::advanced(1)};
  static constexpr Input<std::int64_t> predictor_order{
      "predictor_order",
      Widget{.number = 3, .min = 1, .max = 6, .extra = sampler_widgets::kAdvancedOnly}};
  static constexpr Input<std::int64_t> corrector_order{
      "corrector_order",
      Widget{.number = 4, .min = 0, .max = 6, .extra = sampler_widgets::kAdvancedOnly}};
  static constexpr Input<bool> use_pece{"use_pece",
                                        Widget{.extra = sampler_widgets::kAdvancedUnset}};
  static constexpr Input<bool> simple_order_2{"simple_order_2",
                                              Widget{.extra = sampler_widgets::kAdvancedUnset}};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports =
      heddle::ports(model, eta, sde_start_percent, sde_end_percent, s_noise, predictor_order,
                    corrector_order, use_pece, simple_order_2, sampler);
  static void execute(Context& ctx);
};

struct SamplerSEEDS2 {
  static constexpr const char* kTypes[] = {"phi_1", "phi_2", nullptr};
  static constexpr Info info{"SamplerSEEDS2",
                             1,
                             "SamplerSEEDS2",
                             "model/sampling/samplers",
                             "seeds_2 with its numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> solver_type{"solver_type",
                                                  Widget{.choices = kTypes, .type = "COMBO"}};
  static constexpr Input<double> eta{"eta", sampler_widgets::advanced(1)};
  static constexpr Input<double> s_noise{"s_noise", sampler_widgets::advanced(1)};
  static constexpr Input<double> r{
      "r",
      Widget{
          .number = 0.5, .min = 0.01, .max = 1, .step = 0.01, .extra = sampler_widgets::kAdvanced}};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(solver_type, eta, s_noise, r, sampler);
  static void execute(Context& ctx);
};

struct SamplerLCM {
  static constexpr Info info{
      "SamplerLCM",
      1,
      "SamplerLCM",
      "model/sampling/samplers",
      "lcm with noise that fades from one factor to another, and is cut off.",
      HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> s_noise{"s_noise", Widget{.number = 1, .max = 64, .step = 0.01}};
  static constexpr Input<double> s_noise_end{"s_noise_end",
                                             Widget{.number = 1, .max = 64, .step = 0.01}};
  static constexpr Input<double> noise_clip_std{"noise_clip_std",
                                                Widget{.number = 0, .max = 10, .step = 0.01}};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(s_noise, s_noise_end, noise_clip_std, sampler);
  static void execute(Context& ctx);
};

struct SamplerLCMUpscale {
  static constexpr const char* kMethods[] = {"bislerp", "nearest-exact", "bilinear",
                                             "area",    "bicubic",       nullptr};
  static constexpr Info info{
      "SamplerLCMUpscale",
      1,
      "",
      "model/sampling/samplers",
      "lcm in which the picture grows after each of the first steps. Without a noise mask.",
      HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> scale_ratio{"scale_ratio",
                                             Widget{.number = 1,
                                                    .min = 0.1,
                                                    .max = 20,
                                                    .step = 0.01,
                                                    .extra = sampler_widgets::kAdvancedOnly}};
  static constexpr Input<std::int64_t> scale_steps{"scale_steps",
                                                   Widget{.number = -1,
                                                          .min = -1,
                                                          .max = 1000,
                                                          .step = 1,
                                                          .extra = sampler_widgets::kAdvancedOnly}};
  static constexpr Input<std::string> upscale_method{"upscale_method",
                                                     Widget{.choices = kMethods, .type = "COMBO"}};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(scale_ratio, scale_steps, upscale_method, sampler);
  static void execute(Context& ctx);
};

struct SamplerARVideo {
  static constexpr Info info{
      "SamplerARVideo",
      1,
      "Sampler AR Video",
      "model/sampling/samplers",
      "Draws a video block by block of its frames, each of which looks at those before it. For "
      "causal models of Wan 2.1.",
      HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> num_frame_per_block{
      "num_frame_per_block", Widget{.number = 1, .min = 1, .max = 64},
      "Frames of the latent in a block, as the model was trained: 1, or 3."};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(num_frame_per_block, sampler);
  static void execute(Context& ctx);
};

struct SamplerEulerCFGpp {
  static constexpr const char* kVersions[] = {"regular", "alternative", nullptr};
  static constexpr Info info{"SamplerEulerCFGpp",
                             1,
                             "SamplerEulerCFG++",
                             "experimental",
                             "euler_cfg_pp, or its other form.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<std::string> version{
      "version",
      Widget{.choices = kVersions, .extra = sampler_widgets::kAdvancedOnly, .type = "COMBO"}};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(version, sampler);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
