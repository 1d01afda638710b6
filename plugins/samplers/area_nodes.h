// Nodes that say where, when and how much a CONDITIONING counts (heddle/diffusion/values.h). On the
// host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

namespace area_widgets {
inline constexpr Widget kStrength{.number = 1, .max = 10, .step = 0.01};
inline constexpr Widget kSide{.number = 64, .min = 64, .max = 16384, .step = 8};
inline constexpr Widget kPlace{.max = 16384, .step = 8};
inline constexpr Widget kWhole{.number = 1, .max = 1, .step = 0.01, .extra = R"({"min": 0})"};
inline constexpr Widget kPart{.max = 1, .step = 0.01, .extra = R"({"default": 0, "min": 0})"};
inline constexpr const char* kMaskAreas[] = {"default", "mask bounds", nullptr};
constexpr Widget percent(double number) { return {.number = number, .max = 1, .step = 0.001}; }
}  // namespace area_widgets

struct ConditioningSetArea {
  static constexpr Info info{"ConditioningSetArea",
                             1,
                             "Conditioning (Set Area)",
                             "conditioning",
                             "Only for a part of the picture, in pixels.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<std::int64_t> width{"width", area_widgets::kSide};
  static constexpr Input<std::int64_t> height{"height", area_widgets::kSide};
  static constexpr Input<std::int64_t> x{"x", area_widgets::kPlace};
  static constexpr Input<std::int64_t> y{"y", area_widgets::kPlace};
  static constexpr Input<double> strength{"strength", area_widgets::kStrength};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning, width, height, x, y, strength, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningSetAreaPercentage {
  static constexpr Info info{"ConditioningSetAreaPercentage",
                             1,
                             "Conditioning (Set Area with Percentage)",
                             "conditioning",
                             "Only for a part of the picture, in parts of its sides.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> width{"width", area_widgets::kWhole};
  static constexpr Input<double> height{"height", area_widgets::kWhole};
  static constexpr Input<double> x{"x", area_widgets::kPart};
  static constexpr Input<double> y{"y", area_widgets::kPart};
  static constexpr Input<double> strength{"strength", area_widgets::kStrength};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning, width, height, x, y, strength, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningSetAreaPercentageVideo {
  static constexpr Info info{"ConditioningSetAreaPercentageVideo",
                             1,
                             "ConditioningSetAreaPercentageVideo",
                             "conditioning",
                             "Only for a part of a video, in parts of its sides and its length.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> width{"width", area_widgets::kWhole};
  static constexpr Input<double> height{"height", area_widgets::kWhole};
  static constexpr Input<double> temporal{"temporal", area_widgets::kWhole};
  static constexpr Input<double> x{"x", area_widgets::kPart};
  static constexpr Input<double> y{"y", area_widgets::kPart};
  static constexpr Input<double> z{"z", area_widgets::kPart};
  static constexpr Input<double> strength{"strength", area_widgets::kStrength};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(conditioning, width, height, temporal, x, y, z, strength, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningSetMask {
  static constexpr Info info{"ConditioningSetMask",
                             1,
                             "Conditioning (Set Mask)",
                             "conditioning",
                             "It counts as much as the mask says.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<Tensor> mask{"mask", 0, "", "MASK"};
  static constexpr Input<double> strength{"strength", area_widgets::kStrength};
  static constexpr Input<std::string> set_cond_area{"set_cond_area",
                                                    {.choices = area_widgets::kMaskAreas}};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning, mask, strength, set_cond_area, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningSetTimestepRange {
  static constexpr Info info{"ConditioningSetTimestepRange",
                             1,
                             "ConditioningSetTimestepRange",
                             "advanced/conditioning",
                             "Only in a part of the way from noise to picture.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> conditioning{"conditioning", HEDDLE_PORT_PASS, "", "CONDITIONING"};
  static constexpr Input<double> start{"start", area_widgets::percent(0)};
  static constexpr Input<double> end{"end", area_widgets::percent(1)};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(conditioning, start, end, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningTimestepsRange {
  static constexpr Info info{"ConditioningTimestepsRange",
                             1,
                             "Timesteps Range",
                             "advanced/hooks",
                             "A part of the way from noise to picture, and what is before and "
                             "behind it.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<double> start_percent{"start_percent", area_widgets::percent(0)};
  static constexpr Input<double> end_percent{"end_percent", area_widgets::percent(1)};
  static constexpr Output<Value> range{"TIMESTEPS_RANGE", 0, "", "TIMESTEPS_RANGE"};
  static constexpr Output<Value> before{"BEFORE_RANGE", 0, "", "TIMESTEPS_RANGE"};
  static constexpr Output<Value> after{"AFTER_RANGE", 0, "", "TIMESTEPS_RANGE"};
  static constexpr auto ports = heddle::ports(start_percent, end_percent, range, before, after);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
