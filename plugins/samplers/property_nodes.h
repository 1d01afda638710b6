// Nodes that set several properties of CONDITIONINGs at once, of one or of a positive and a
// negative one, and that join what they made. On the host; stateless.
#pragma once

#include "area_nodes.h"

namespace heddle::samplers {

namespace property_ports {
inline constexpr std::uint32_t kFlags = HEDDLE_NODE_HOST | HEDDLE_NODE_EXPERIMENTAL;
constexpr Input<Value> conditioning(const char* name) {
  return Input<Value>(name, HEDDLE_PORT_PASS, "", "CONDITIONING");
}
constexpr Input<Value> hooks() {
  return Input<Value>("hooks", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "", "HOOKS");
}
}  // namespace property_ports

struct ConditioningSetProperties {
  static constexpr Info info{"ConditioningSetProperties",
                             1,
                             "Cond Set Props",
                             "advanced/hooks/cond single",
                             "A strength, a mask and a part of the way.",
                             property_ports::kFlags};
  static constexpr Input<Value> cond_new = property_ports::conditioning("cond_NEW");
  static constexpr Input<double> strength{"strength", area_widgets::kStrength};
  static constexpr Input<std::string> set_cond_area{"set_cond_area",
                                                    {.choices = area_widgets::kMaskAreas}};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL, "", "MASK"};
  static constexpr Input<Value> hooks = property_ports::hooks();
  static constexpr Input<Value> timesteps{"timesteps", HEDDLE_PORT_OPTIONAL, "", "TIMESTEPS_RANGE"};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(cond_new, strength, set_cond_area, mask, hooks, timesteps, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningSetPropertiesAndCombine {
  static constexpr Info info{"ConditioningSetPropertiesAndCombine",
                             1,
                             "Cond Set Props Combine",
                             "advanced/hooks/cond single",
                             "A strength, a mask and a part of the way, and joined to another.",
                             property_ports::kFlags};
  static constexpr Input<Value> cond = property_ports::conditioning("cond");
  static constexpr Input<Value> cond_new = property_ports::conditioning("cond_NEW");
  static constexpr Input<double> strength{"strength", area_widgets::kStrength};
  static constexpr Input<std::string> set_cond_area{"set_cond_area",
                                                    {.choices = area_widgets::kMaskAreas}};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL, "", "MASK"};
  static constexpr Input<Value> hooks = property_ports::hooks();
  static constexpr Input<Value> timesteps{"timesteps", HEDDLE_PORT_OPTIONAL, "", "TIMESTEPS_RANGE"};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(cond, cond_new, strength, set_cond_area, mask, hooks, timesteps, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct ConditioningSetDefaultCombine {
  static constexpr Info info{"ConditioningSetDefaultCombine",
                             1,
                             "Cond Set Default Combine",
                             "advanced/hooks/cond single",
                             "The second counts where the first leaves something.",
                             property_ports::kFlags};
  static constexpr Input<Value> cond = property_ports::conditioning("cond");
  static constexpr Input<Value> cond_default = property_ports::conditioning("cond_DEFAULT");
  static constexpr Input<Value> hooks = property_ports::hooks();
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(cond, cond_default, hooks, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct PairConditioningSetProperties {
  static constexpr Info info{"PairConditioningSetProperties",
                             1,
                             "Cond Pair Set Props",
                             "advanced/hooks/cond pair",
                             "A strength, a mask and a part of the way for both.",
                             property_ports::kFlags};
  static constexpr Input<Value> positive_new = property_ports::conditioning("positive_NEW");
  static constexpr Input<Value> negative_new = property_ports::conditioning("negative_NEW");
  static constexpr Input<double> strength{"strength", area_widgets::kStrength};
  static constexpr Input<std::string> set_cond_area{"set_cond_area",
                                                    {.choices = area_widgets::kMaskAreas}};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL, "", "MASK"};
  static constexpr Input<Value> hooks = property_ports::hooks();
  static constexpr Input<Value> timesteps{"timesteps", HEDDLE_PORT_OPTIONAL, "", "TIMESTEPS_RANGE"};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(positive_new, negative_new, strength, set_cond_area,
                                              mask, hooks, timesteps, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct PairConditioningSetPropertiesAndCombine {
  static constexpr Info info{"PairConditioningSetPropertiesAndCombine",
                             1,
                             "Cond Pair Set Props Combine",
                             "advanced/hooks/cond pair",
                             "A strength, a mask and a part of the way for both, and joined to "
                             "others.",
                             property_ports::kFlags};
  static constexpr Input<Value> positive_in = property_ports::conditioning("positive");
  static constexpr Input<Value> negative_in = property_ports::conditioning("negative");
  static constexpr Input<Value> positive_new = property_ports::conditioning("positive_NEW");
  static constexpr Input<Value> negative_new = property_ports::conditioning("negative_NEW");
  static constexpr Input<double> strength{"strength", area_widgets::kStrength};
  static constexpr Input<std::string> set_cond_area{"set_cond_area",
                                                    {.choices = area_widgets::kMaskAreas}};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL, "", "MASK"};
  static constexpr Input<Value> hooks = property_ports::hooks();
  static constexpr Input<Value> timesteps{"timesteps", HEDDLE_PORT_OPTIONAL, "", "TIMESTEPS_RANGE"};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(positive_in, negative_in, positive_new, negative_new, strength, set_cond_area,
                    mask, hooks, timesteps, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct PairConditioningSetDefaultCombine {
  static constexpr Info info{"PairConditioningSetDefaultCombine",
                             1,
                             "Cond Pair Set Default Combine",
                             "advanced/hooks/cond pair",
                             "The defaults count where the others leave something.",
                             property_ports::kFlags};
  static constexpr Input<Value> positive_in = property_ports::conditioning("positive");
  static constexpr Input<Value> negative_in = property_ports::conditioning("negative");
  static constexpr Input<Value> positive_default = property_ports::conditioning("positive_DEFAULT");
  static constexpr Input<Value> negative_default = property_ports::conditioning("negative_DEFAULT");
  static constexpr Input<Value> hooks = property_ports::hooks();
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(positive_in, negative_in, positive_default,
                                              negative_default, hooks, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct PairConditioningCombine {
  static constexpr Info info{"PairConditioningCombine",
                             1,
                             "Cond Pair Combine",
                             "advanced/hooks/cond pair",
                             "Two pairs, each side joined.",
                             property_ports::kFlags};
  static constexpr Input<Value> positive_a = property_ports::conditioning("positive_A");
  static constexpr Input<Value> negative_a = property_ports::conditioning("negative_A");
  static constexpr Input<Value> positive_b = property_ports::conditioning("positive_B");
  static constexpr Input<Value> negative_b = property_ports::conditioning("negative_B");
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(positive_a, negative_a, positive_b, negative_b, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
