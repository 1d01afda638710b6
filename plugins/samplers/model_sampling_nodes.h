// Nodes that change how a MODEL's noise levels are spaced: its settings, nothing else. On the host;
// stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct ModelSamplingFlux {
  static constexpr Widget kShift{
      .number = 1.15, .max = 100, .step = 0.01, .extra = R"({"advanced": true})"};
  static constexpr Widget kBase{
      .number = 0.5, .max = 100, .step = 0.01, .extra = R"({"advanced": true})"};
  static constexpr Widget kPixels{.number = 1024, .min = 16, .max = 16384, .step = 8};

  static constexpr Info info{"ModelSamplingFlux",
                             1,
                             "ModelSamplingFlux",
                             "model/patch/flux",
                             "FLUX's levels, shifted for a picture of this size.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> max_shift{"max_shift", kShift};
  static constexpr Input<double> base_shift{"base_shift", kBase};
  static constexpr Input<std::int64_t> width{"width", kPixels};
  static constexpr Input<std::int64_t> height{"height", kPixels};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, max_shift, base_shift, width, height, out);
  static void execute(Context& ctx);
};

// ComfyUI's ModelSamplingSD3 sets the timestep of level 1 to 1000 and its ModelSamplingAuraFlow to
// 1, each right for its own models only.
struct ModelSamplingSD3 {
  static constexpr Info info{"ModelSamplingSD3",
                             1,
                             "ModelSamplingSD3",
                             "advanced/model",
                             "Flow levels with a shift: more steps at high noise. The timestep of "
                             "level 1 stays what the model was trained with.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> shift{"shift", Widget{.number = 3, .max = 100, .step = 0.01}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, shift, out);
  static void execute(Context& ctx);
};

struct MiniMaxH3SigmaShift {
  static constexpr Info info{"MiniMaxH3SigmaShift",
                             1,
                             "ModelSamplingMiniMaxH3",
                             "model/patch/minimax",
                             "Flow levels of MiniMax H3 with a shift for the video and one for its "
                             "sound: more steps at high noise.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> shift_video{
      "shift_video", Widget{.number = 12, .min = 0.01, .max = 100, .step = 0.01}};
  static constexpr Input<double> shift_audio{
      "shift_audio", Widget{.number = 3, .min = 0.01, .max = 100, .step = 0.01}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, shift_video, shift_audio, out);
  static void execute(Context& ctx);
};

struct ModelSamplingAuraFlow {
  static constexpr const char* kKinds[] = {"flow", "img_to_img_velocity", nullptr};
  static constexpr Widget kKind{.text = "flow",
                                .choices = kKinds,
                                .extra = R"({"advanced": true})",
                                .flags = HEDDLE_PORT_OPTIONAL,
                                .type = "COMBO"};

  static constexpr Info info{"ModelSamplingAuraFlow",
                             3,
                             "ModelSamplingAuraFlow",
                             "model/patch",
                             "Flow levels with a shift: more steps at high noise. The timestep of "
                             "level 1 stays what the model was trained with. img_to_img_velocity: "
                             "the model makes of a picture what is to be taken from it (Marigold).",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> shift{"shift", Widget{.number = 1.73, .max = 100, .step = 0.01}};
  static constexpr Input<std::string> sampling{"sampling", kKind};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, shift, sampling, out);
  static void execute(Context& ctx);
};

// In steps of a diffusion that was trained in 1000 of them, as SD 1 and SDXL.
struct ModelSamplingDiscrete {
  static constexpr const char* kKinds[] = {"eps",        "v_prediction",    "lcm",  "x0",
                                           "img_to_img", "img_to_img_flow", nullptr};

  static constexpr Info info{"ModelSamplingDiscrete",
                             1,
                             "ModelSamplingDiscrete",
                             "model/patch",
                             "What the model's output means, over the levels of SD 1 and SDXL.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> sampling{"sampling", {.choices = kKinds}};
  static constexpr Input<bool> zsnr{"zsnr", Widget{.extra = R"({"advanced": true})"}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, sampling, zsnr, out);
  static void execute(Context& ctx);
};

struct ModelSamplingContinuousEDM {
  static constexpr const char* kExtra = R"({"advanced": true, "round": false})";
  static constexpr const char* kKinds[] = {"v_prediction", "edm",          "edm_playground_v2.5",
                                           "eps",          "cosmos_rflow", nullptr};

  static constexpr Info info{
      "ModelSamplingContinuousEDM",
      1,
      "ModelSamplingContinuousEDM",
      "model/patch",
      "What the model's output means, over levels evenly in their logarithm.",
      HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> sampling{"sampling", {.choices = kKinds}};
  static constexpr Input<double> sigma_max{
      "sigma_max", Widget{.number = 120, .max = 1000, .step = 0.001, .extra = kExtra}};
  static constexpr Input<double> sigma_min{
      "sigma_min", Widget{.number = 0.002, .max = 1000, .step = 0.001, .extra = kExtra}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, sampling, sigma_max, sigma_min, out);
  static void execute(Context& ctx);
};

struct ModelSamplingContinuousV {
  static constexpr const char* kExtra = R"({"advanced": true, "round": false})";
  static constexpr const char* kKinds[] = {"v_prediction", nullptr};

  static constexpr Info info{"ModelSamplingContinuousV",
                             1,
                             "ModelSamplingContinuousV",
                             "model/patch",
                             "A velocity, over levels that the model is told as angles.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> sampling{"sampling", {.choices = kKinds}};
  static constexpr Input<double> sigma_max{
      "sigma_max", Widget{.number = 500, .max = 1000, .step = 0.001, .extra = kExtra}};
  static constexpr Input<double> sigma_min{
      "sigma_min", Widget{.number = 0.03, .max = 1000, .step = 0.001, .extra = kExtra}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, sampling, sigma_max, sigma_min, out);
  static void execute(Context& ctx);
};

struct ModelSamplingLTXV {
  static constexpr Info info{"ModelSamplingLTXV",
                             1,
                             "",
                             "advanced/model",
                             "LTX-Video's levels, shifted by the size of the latent.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> max_shift{"max_shift",
                                           Widget{.number = 2.05, .max = 100, .step = 0.01}};
  static constexpr Input<double> base_shift{"base_shift",
                                            Widget{.number = 0.95, .max = 100, .step = 0.01}};
  static constexpr Input<Value> latent{"latent", HEDDLE_PORT_OPTIONAL, "", "LATENT"};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, max_shift, base_shift, latent, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ModelSamplingStableCascade {
  static constexpr Info info{"ModelSamplingStableCascade",
                             1,
                             "ModelSamplingStableCascade",
                             "advanced/model",
                             "The noise as output, over Stable Cascade's levels with a shift.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> shift{"shift", Widget{.number = 2, .max = 100, .step = 0.01}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, shift, out);
  static void execute(Context& ctx);
};

struct ModelNoiseScale {
  static constexpr Info info{"ModelNoiseScale",
                             1,
                             "ModelNoiseScale",
                             "model/patch",
                             "How strong the noise is that a run draws for this model.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<double> noise_scale{"noise_scale",
                                             Widget{.number = 1, .max = 64, .step = 0.01}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, noise_scale, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
