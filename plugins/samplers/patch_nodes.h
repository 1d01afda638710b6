// Nodes that patch a MODEL's predictions (prediction_patch.h): they add a record to its settings,
// nothing else. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

namespace patch_ports {
inline constexpr std::uint32_t kFlags = HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES;
inline constexpr std::uint32_t kExperimental = kFlags | HEDDLE_NODE_EXPERIMENTAL;
inline constexpr const char* kAdvanced = R"({"advanced": true})";
inline constexpr const char* kNumber = R"({"advanced": true, "display": "number"})";
constexpr Input<Value> model() { return Input<Value>("model", HEDDLE_PORT_PASS, "", "MODEL"); }
constexpr Output<Value> model_out() { return Output<Value>("MODEL", 0, "", "MODEL"); }
constexpr Output<Value> patched_model() { return Output<Value>("patched_model", 0, "", "MODEL"); }
constexpr Widget percent(double number) { return {.number = number, .max = 1, .step = 0.001}; }
constexpr Widget advanced(double number, double min, double max, double step) {
  return {.number = number, .min = min, .max = max, .step = step, .extra = kAdvanced};
}
constexpr Widget rescaling(double value) {
  return {.number = value, .min = 0.01, .max = 100, .step = 0.001, .extra = kNumber};
}
inline constexpr Widget kLeastCfg{
    .number = 1, .max = 100, .step = 0.5, .round = 0.01, .extra = kAdvanced};
}  // namespace patch_ports

struct RescaleCFG {
  static constexpr Info info{"RescaleCFG",
                             1,
                             "RescaleCFG",
                             "advanced/model",
                             "Guidance whose deviation is brought back towards the positive's.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> multiplier{"multiplier",
                                            Widget{.number = 0.7, .max = 1, .step = 0.01}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, multiplier, out);
  static void execute(Context& ctx);
};

struct RenormCFG {
  static constexpr Info info{"RenormCFG",
                             1,
                             "",
                             "model/patch",
                             "Guidance below a level, no longer than the positive prediction.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> cfg_trunc{
      "cfg_trunc", Widget{.number = 100,
                          .max = 100,
                          .step = 0.01,
                          .extra = R"({"advanced": true, "default": 100})"}};
  static constexpr Input<double> renorm_cfg{"renorm_cfg", patch_ports::advanced(1, 0, 100, 0.01)};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, cfg_trunc, renorm_cfg, out);
  static void execute(Context& ctx);
};

struct PerpNeg {
  static constexpr Info info{"PerpNeg",
                             1,
                             "Perp-Neg (DEPRECATED by Perp-Neg Guider)",
                             "experimental",
                             "Of the negative prediction only what stands across the positive one.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<Value> empty_conditioning{"empty_conditioning", HEDDLE_PORT_PASS, "",
                                                   "CONDITIONING"};
  static constexpr Input<double> neg_scale{"neg_scale", patch_ports::advanced(1, 0, 100, 0.01)};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, empty_conditioning, neg_scale, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct APG {
  static constexpr Info info{"APG",
                             1,
                             "Adaptive Projected Guidance",
                             "model/sampling/custom",
                             "Guidance cut to a length, with its part along the positive "
                             "prediction scaled.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> eta{"eta", patch_ports::advanced(1, -10, 10, 0.01)};
  static constexpr Input<double> norm_threshold{"norm_threshold",
                                                patch_ports::advanced(5, 0, 50, 0.1)};
  static constexpr Input<double> momentum{"momentum", patch_ports::advanced(0, -5, 1, 0.01)};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, eta, norm_threshold, momentum, out);
  static void execute(Context& ctx);
};

struct FreSca {
  static constexpr Widget kLow{
      .number = 1, .max = 10, .step = 0.01, .extra = R"({"advanced": true, "min": 0, "max": 10})"};
  static constexpr Widget kHigh{.number = 1.25,
                                .max = 10,
                                .step = 0.01,
                                .extra = R"({"advanced": true, "min": 0, "max": 10})"};

  static constexpr Info info{"FreSca",
                             1,
                             "FreSca",
                             "experimental",
                             "Coarse and fine parts of the guidance, each scaled by itself.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> scale_low{"scale_low", kLow, "Of coarse parts."};
  static constexpr Input<double> scale_high{"scale_high", kHigh, "Of fine parts."};
  static constexpr Input<std::int64_t> freq_cutoff{
      "freq_cutoff",
      Widget{.number = 20, .min = 1, .max = 10000, .step = 1, .extra = patch_ports::kAdvanced},
      "How many frequencies around the middle count as coarse."};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, scale_low, scale_high, freq_cutoff, out);
  static void execute(Context& ctx);
};

struct ScaleROPE {
  static constexpr Widget kScale = patch_ports::advanced(1, 0, 100, 0.1);
  static constexpr Widget kShift = patch_ports::advanced(0, -256, 256, 0.1);

  static constexpr Info info{"ScaleROPE",
                             1,
                             "",
                             "model/patch",
                             "Where the model takes the parts of a picture to lie: further from "
                             "each other, or elsewhere. FLUX has no scale in time.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> scale_x{"scale_x", kScale}, shift_x{"shift_x", kShift};
  static constexpr Input<double> scale_y{"scale_y", kScale}, shift_y{"shift_y", kShift};
  static constexpr Input<double> scale_t{"scale_t", kScale}, shift_t{"shift_t", kShift};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports =
      heddle::ports(model, scale_x, shift_x, scale_y, shift_y, scale_t, shift_t, out);
  static void execute(Context& ctx);
};

struct CFGNorm {
  static constexpr Info info{"CFGNorm",
                             1,
                             "",
                             "advanced/guidance",
                             "Guidance no longer than the positive prediction, at each position.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> strength{"strength",
                                          Widget{.number = 1, .max = 100, .step = 0.01}};
  static constexpr Input<bool> pre_cfg{"pre_cfg", Widget{.flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Output<Value> out = patch_ports::patched_model();
  static constexpr auto ports = heddle::ports(model, strength, pre_cfg, out);
  static void execute(Context& ctx);
};

struct CFGZeroStar {
  static constexpr Info info{"CFGZeroStar",
                             1,
                             "",
                             "advanced/guidance",
                             "The negative prediction scaled to fit the positive one best.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Output<Value> out = patch_ports::patched_model();
  static constexpr auto ports = heddle::ports(model, out);
  static void execute(Context& ctx);
};

struct TCFG {
  static constexpr Info info{"TCFG",
                             1,
                             "Tangential Damping CFG",
                             "advanced/guidance",
                             "Of the negative prediction only what lies along both.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Output<Value> out = patch_ports::patched_model();
  static constexpr auto ports = heddle::ports(model, out);
  static void execute(Context& ctx);
};

struct Mahiro {
  static constexpr Info info{"Mahiro",
                             1,
                             "Mahiro is so cute that she deserves a better guidance function!! "
                             "(\u3002\u30fb\u03c9\u30fb\u3002)",
                             "_for_testing",
                             "Guidance that follows the direction of the positive prediction more.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Output<Value> out = patch_ports::patched_model();
  static constexpr auto ports = heddle::ports(model, out);
  static void execute(Context& ctx);
};

struct EpsilonScaling {
  static constexpr Info info{
      "Epsilon Scaling",  1, "", "model/patch/unet", "The predicted noise divided by a factor.",
      patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> scaling_factor{
      "scaling_factor",
      Widget{
          .number = 1.005, .min = 0.5, .max = 1.5, .step = 0.001, .extra = patch_ports::kNumber}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, scaling_factor, out);
  static void execute(Context& ctx);
};

struct TemporalScoreRescaling {
  static constexpr Info info{"TemporalScoreRescaling",
                             1,
                             "TSR - Temporal Score Rescaling",
                             "model/patch/unet",
                             "The score scaled by the signal there is: more or less variety.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> tsr_k{"tsr_k", patch_ports::rescaling(0.95)};
  static constexpr Input<double> tsr_sigma{"tsr_sigma", patch_ports::rescaling(1)};
  static constexpr Output<Value> out = patch_ports::patched_model();
  static constexpr auto ports = heddle::ports(model, tsr_k, tsr_sigma, out);
  static void execute(Context& ctx);
};

struct VideoLinearCFGGuidance {
  static constexpr Info info{"VideoLinearCFGGuidance",
                             1,
                             "Video Linear CFG Guidance",
                             "model/sampling/guiders",
                             "A cfg that rises over the items of the batch.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> min_cfg{"min_cfg", patch_ports::kLeastCfg};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, min_cfg, out);
  static void execute(Context& ctx);
};

struct VideoTriangleCFGGuidance {
  static constexpr Info info{"VideoTriangleCFGGuidance",
                             1,
                             "Video Triangle CFG Guidance",
                             "model/sampling/guiders",
                             "A cfg that rises to the middle item of the batch and falls.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> min_cfg{"min_cfg", patch_ports::kLeastCfg};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, min_cfg, out);
  static void execute(Context& ctx);
};

struct CFGOverride {
  static constexpr Info info{"CFGOverride",
                             1,
                             "CFG Override",
                             "model/sampling/guiders",
                             "Another cfg in a part of the way from noise to picture.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> cfg{"cfg",
                                     Widget{.number = 1, .max = 100, .step = 0.1, .round = 0.01}};
  static constexpr Input<double> start_percent{"start_percent", patch_ports::percent(0)};
  static constexpr Input<double> end_percent{"end_percent", patch_ports::percent(1)};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, cfg, start_percent, end_percent, out);
  static void execute(Context& ctx);
};

struct DifferentialDiffusion {
  static constexpr Info info{"DifferentialDiffusion",
                             1,
                             "Differential Diffusion",
                             "_for_testing",
                             "What a noise mask marks weakly is drawn anew for a shorter time.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> strength{
      "strength", Widget{.number = 1, .max = 1, .step = 0.01, .flags = HEDDLE_PORT_OPTIONAL}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, strength, out);
  static void execute(Context& ctx);
};

struct EasyCache {
  static constexpr Info info{"EasyCache",
                             1,
                             "EasyCache",
                             "advanced/debug",
                             "Leaves calls of the model out where little changes.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> reuse_threshold{"reuse_threshold",
                                                 patch_ports::advanced(0.2, 0, 3, 0.01)};
  static constexpr Input<double> start_percent{"start_percent",
                                               patch_ports::advanced(0.15, 0, 1, 0.01)};
  static constexpr Input<double> end_percent{"end_percent",
                                             patch_ports::advanced(0.95, 0, 1, 0.01)};
  static constexpr Input<bool> verbose{"verbose", Widget{.extra = patch_ports::kAdvanced}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports =
      heddle::ports(model, reuse_threshold, start_percent, end_percent, verbose, out);
  static void execute(Context& ctx);
};

struct LazyCache {
  static constexpr Info info{"LazyCache",
                             1,
                             "LazyCache",
                             "advanced/debug",
                             "Leaves whole evaluations out where little changes.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> reuse_threshold{"reuse_threshold",
                                                 patch_ports::advanced(0.2, 0, 3, 0.01)};
  static constexpr Input<double> start_percent{"start_percent",
                                               patch_ports::advanced(0.15, 0, 1, 0.01)};
  static constexpr Input<double> end_percent{"end_percent",
                                             patch_ports::advanced(0.95, 0, 1, 0.01)};
  static constexpr Input<bool> verbose{"verbose", Widget{.extra = patch_ports::kAdvanced}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports =
      heddle::ports(model, reuse_threshold, start_percent, end_percent, verbose, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
