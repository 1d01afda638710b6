// The parts of a sampler as nodes of their own: noise, guider, sampler, and the two that put them
// together. What the small ones make are records (heddle/diffusion/values.h). Stateless.
#pragma once

#include "ksampler_nodes.h"

namespace heddle::samplers {

struct RandomNoise {
  static constexpr Info info{"RandomNoise",      1,
                             "RandomNoise",      "sampling/custom_sampling/noise",
                             "Noise of a seed.", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::uint64_t> noise_seed{"noise_seed", Widget{}};
  static constexpr Output<Value> noise{"NOISE", 0, "", "NOISE"};
  static constexpr auto ports = heddle::ports(noise_seed, noise);
  static void execute(Context& ctx);
};

struct DisableNoise {
  static constexpr Info info{"DisableNoise",
                             1,
                             "DisableNoise",
                             "sampling/custom_sampling/noise",
                             "No noise: the run starts from the latent alone.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Output<Value> noise{"NOISE", 0, "", "NOISE"};
  static constexpr auto ports = heddle::ports(noise);
  static void execute(Context& ctx);
};

struct KSamplerSelect {
  static constexpr Info info{"KSamplerSelect",         1,
                             "KSamplerSelect",         "model/sampling/samplers",
                             "A sampler by its name.", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> sampler_name{
      "sampler_name",
      Widget{.source = HEDDLE_SAMPLERS, .kind = HEDDLE_WIDGET_CHOICE, .type = "COMBO"}};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(sampler_name, sampler);
  static void execute(Context& ctx);
};

struct SamplerEulerAncestral {
  static constexpr Widget kAmount{
      .number = 1, .max = 100, .step = 0.01, .extra = R"({"round": false, "advanced": true})"};

  static constexpr Info info{"SamplerEulerAncestral",
                             1,
                             "SamplerEulerAncestral",
                             "model/sampling/samplers",
                             "euler_ancestral with its two numbers.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> eta{"eta", kAmount, "How much of the noise is fresh."};
  static constexpr Input<double> s_noise{"s_noise", kAmount, "Factor of the fresh noise."};
  static constexpr Output<Value> sampler{"SAMPLER", 0, "", "SAMPLER"};
  static constexpr auto ports = heddle::ports(eta, s_noise, sampler);
  static void execute(Context& ctx);
};

struct BasicGuider {
  static constexpr Info info{"BasicGuider",
                             1,
                             "BasicGuider",
                             "sampling/custom_sampling/guiders",
                             "A model and one conditioning.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Output<Value> guider{"GUIDER", 0, "", "GUIDER"};
  static constexpr auto ports = heddle::ports(model, conditioning, guider);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct CFGGuider {
  static constexpr Info info{"CFGGuider",
                             1,
                             "CFGGuider",
                             "sampling/custom_sampling/guiders",
                             "A model and two conditionings, with classifier-free guidance.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> positive{"positive", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> cfg{"cfg", kCfg};
  static constexpr Output<Value> guider{"GUIDER", 0, "", "GUIDER"};
  static constexpr auto ports = heddle::ports(model, positive, negative, cfg, guider);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SamplerCustom {
  static constexpr Info info{"SamplerCustom", 1, "SamplerCustom", "model/sampling/custom",
                             "Draws over given noise levels with a given sampler."};
  static constexpr Input<Value> model{"model", 0, "", "MODEL"};
  static constexpr Input<bool> add_noise{"add_noise",
                                         Widget{.number = 1, .extra = R"({"advanced": true})"}};
  static constexpr Input<std::uint64_t> noise_seed{"noise_seed", Widget{}};
  static constexpr Input<double> cfg{"cfg", kCfg};
  static constexpr Input<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Input<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr Input<Value> sampler{"sampler", 0, "", "SAMPLER"};
  static constexpr Input<Tensor> sigmas{"sigmas", HEDDLE_PORT_HOST, "", "SIGMAS"};
  static constexpr Input<Value> latent_image{"latent_image", 0, "", "LATENT"};
  static constexpr Output<Value> output{"output", 0, "", "LATENT"};
  static constexpr Output<Value> denoised{"denoised_output", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(model, add_noise, noise_seed, cfg, positive, negative,
                                              sampler, sigmas, latent_image, output, denoised);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct SamplerCustomAdvanced {
  static constexpr Info info{"SamplerCustomAdvanced", 1, "SamplerCustomAdvanced",
                             "sampling/custom_sampling",
                             "Draws: noise, guider, sampler and noise levels come as inputs."};
  static constexpr Input<Value> noise{"noise", 0, "", "NOISE"};
  static constexpr Input<Value> guider{"guider", 0, "", "GUIDER"};
  static constexpr Input<Value> sampler{"sampler", 0, "", "SAMPLER"};
  static constexpr Input<Tensor> sigmas{"sigmas", HEDDLE_PORT_HOST, "", "SIGMAS"};
  static constexpr Input<Value> latent_image{"latent_image", 0, "", "LATENT"};
  static constexpr Output<Value> output{"output", 0, "", "LATENT"};
  static constexpr Output<Value> denoised{"denoised_output", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(noise, guider, sampler, sigmas, latent_image, output, denoised);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct AddNoise {
  static constexpr Info info{"AddNoise",
                             1,
                             "AddNoise",
                             "_for_testing/custom_sampling/noise",
                             "Noise on a latent, as much as lies between the first of the levels "
                             "and the last, or as a single level says.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<Value> noise{"noise", 0, "", "NOISE"};
  static constexpr Input<Tensor> sigmas{"sigmas", 0, "", "SIGMAS"};
  static constexpr Input<Value> latent_image{"latent_image", 0, "", "LATENT"};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(model, noise, sigmas, latent_image, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
