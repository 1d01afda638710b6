// Nodes that change CONDITIONING, whatever encoder it came from. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct FluxGuidance {
  static constexpr Widget kGuidance{.number = 3.5, .max = 100, .step = 0.1};

  static constexpr Info info{"FluxGuidance",
                             1,
                             "",
                             "advanced/conditioning/flux",
                             "How closely a FLUX model that was distilled with guidance follows "
                             "the text.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> guidance{"guidance", kGuidance};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning, guidance, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningZeroOut {
  static constexpr Info info{"ConditioningZeroOut",
                             1,
                             "ConditioningZeroOut",
                             "advanced/conditioning",
                             "Zeros in the place of every number.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningCombine {
  static constexpr Info info{"ConditioningCombine",
                             1,
                             "Conditioning (Combine)",
                             "conditioning",
                             "Both: the model is asked with each, and the answers are averaged.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> first{"conditioning_1", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> second{"conditioning_2", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(first, second, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningConcat {
  static constexpr Info info{"ConditioningConcat", 1, "Conditioning (Concat)", "conditioning",
                             "The tokens of the second text behind those of the first."};
  static constexpr Input<Value> to{"conditioning_to", 0, "", "CONDITIONING"};
  static constexpr Input<Value> from{"conditioning_from", 0, "", "CONDITIONING"};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(to, from, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningAverage {
  static constexpr Widget kStrength{.number = 1, .max = 1, .step = 0.01};

  static constexpr Info info{"ConditioningAverage", 1, "ConditioningAverage", "conditioning",
                             "Between two texts: their numbers are mixed."};
  static constexpr Input<Value> to{"conditioning_to", 0, "", "CONDITIONING"};
  static constexpr Input<Value> from{"conditioning_from", 0, "", "CONDITIONING"};
  static constexpr Input<double> strength{"conditioning_to_strength", kStrength};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(to, from, strength, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningSetAreaStrength {
  static constexpr Widget kStrength{.number = 1, .max = 10, .step = 0.01};

  static constexpr Info info{"ConditioningSetAreaStrength",
                             1,
                             "ConditioningSetAreaStrength",
                             "conditioning",
                             "How much this one counts among several.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> strength{"strength", kStrength};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning, strength, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct unCLIPConditioning {
  static constexpr Info info{"unCLIPConditioning",
                             1,
                             "unCLIPConditioning",
                             "conditioning",
                             "Draws by a picture: for unCLIP models and SDXL (revision).",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Value> clip_vision_output{"clip_vision_output", HEDDLE_PORT_PASS, "",
                                                   "CLIP_VISION_OUTPUT"};
  static constexpr Input<double> strength{"strength",
                                          Widget{.number = 1, .min = -10, .max = 10, .step = 0.01}};
  static constexpr Input<double> noise_augmentation{"noise_augmentation",
                                                    Widget{.number = 0, .max = 1, .step = 0.01}};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(conditioning, clip_vision_output, strength, noise_augmentation, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// Of what ConditioningZeroOut sets to 0: the text's numbers and the pooled ones.
struct ConditioningMultiply {
  static constexpr Info info{"ConditioningMultiply", 1, "Conditioning (Multiply)",
                             "model/conditioning/transform", "All numbers times one."};
  static constexpr Input<Value> conditioning{"conditioning", 0, "", "CONDITIONING"};
  static constexpr Input<double> multiplier{
      "multiplier", Widget{.number = 1, .min = -100, .max = 100, .step = 0.01}};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning, multiplier, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
