// Nodes that join HOOKS and say when they count, under ComfyUI's names. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

namespace hook_ports {
inline constexpr std::uint32_t kFlags =
    HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL;
inline constexpr Widget kStrength{.number = 1, .min = -20, .max = 20, .step = 0.01};
inline constexpr Widget kEndStrength{.number = 1, .max = 10, .step = 0.001};
inline constexpr Widget kStart{.max = 1, .step = 0.001};
inline constexpr Widget kEnd{.number = 1, .max = 1, .step = 0.001};
inline constexpr Widget kPrint{.extra = R"({"advanced": true})"};
constexpr Input<Value> hooks(const char* name) {
  return Input<Value>(name, HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "", "HOOKS");
}
constexpr Output<Value> hooks_out() { return Output<Value>("HOOKS", 0, "", "HOOKS"); }
constexpr Input<Value> previous() {
  return Input<Value>("prev_hook_kf", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "",
                      "HOOK_KEYFRAMES");
}
constexpr Output<Value> keyframes_out() {
  return Output<Value>("HOOK_KF", 0, "", "HOOK_KEYFRAMES");
}
}  // namespace hook_ports

struct CombineHooks2 {
  static constexpr Info info{"CombineHooks2",          1,  "Combine Hooks [2]",
                             "advanced/hooks/combine", "", hook_ports::kFlags};
  static constexpr Input<Value> a = hook_ports::hooks("hooks_A");
  static constexpr Input<Value> b = hook_ports::hooks("hooks_B");
  static constexpr Output<Value> out = hook_ports::hooks_out();
  static constexpr auto ports = heddle::ports(a, b, out);
  static void execute(Context& ctx);
};

struct CombineHooks4 {
  static constexpr Info info{"CombineHooks4",          1,  "Combine Hooks [4]",
                             "advanced/hooks/combine", "", hook_ports::kFlags};
  static constexpr Input<Value> a = hook_ports::hooks("hooks_A");
  static constexpr Input<Value> b = hook_ports::hooks("hooks_B");
  static constexpr Input<Value> c = hook_ports::hooks("hooks_C");
  static constexpr Input<Value> d = hook_ports::hooks("hooks_D");
  static constexpr Output<Value> out = hook_ports::hooks_out();
  static constexpr auto ports = heddle::ports(a, b, c, d, out);
  static void execute(Context& ctx);
};

struct CombineHooks8 {
  static constexpr Info info{"CombineHooks8",          1,  "Combine Hooks [8]",
                             "advanced/hooks/combine", "", hook_ports::kFlags};
  static constexpr Input<Value> a = hook_ports::hooks("hooks_A");
  static constexpr Input<Value> b = hook_ports::hooks("hooks_B");
  static constexpr Input<Value> c = hook_ports::hooks("hooks_C");
  static constexpr Input<Value> d = hook_ports::hooks("hooks_D");
  static constexpr Input<Value> e = hook_ports::hooks("hooks_E");
  static constexpr Input<Value> f = hook_ports::hooks("hooks_F");
  static constexpr Input<Value> g = hook_ports::hooks("hooks_G");
  static constexpr Input<Value> h = hook_ports::hooks("hooks_H");
  static constexpr Output<Value> out = hook_ports::hooks_out();
  static constexpr auto ports = heddle::ports(a, b, c, d, e, f, g, h, out);
  static void execute(Context& ctx);
};

struct SetHookKeyframes {
  static constexpr Info info{"SetHookKeyframes",
                             1,
                             "Set Hook Keyframes",
                             "advanced/hooks/scheduling",
                             "How strong all of these hooks are when.",
                             hook_ports::kFlags};
  static constexpr Input<Value> hooks{"hooks", HEDDLE_PORT_PASS, "", "HOOKS"};
  static constexpr Input<Value> keyframes{"hook_kf", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "",
                                          "HOOK_KEYFRAMES"};
  static constexpr Output<Value> out = hook_ports::hooks_out();
  static constexpr auto ports = heddle::ports(hooks, keyframes, out);
  static void execute(Context& ctx);
};

struct CreateHookKeyframe {
  static constexpr Info info{"CreateHookKeyframe",
                             1,
                             "Create Hook Keyframe",
                             "advanced/hooks/scheduling",
                             "From a part of the way on, hooks are so strong.",
                             hook_ports::kFlags};
  static constexpr Input<double> strength{"strength_mult", hook_ports::kStrength};
  static constexpr Input<double> start{"start_percent", hook_ports::kStart};
  static constexpr Input<Value> previous = hook_ports::previous();
  static constexpr Output<Value> out = hook_ports::keyframes_out();
  static constexpr auto ports = heddle::ports(strength, start, previous, out);
  static void execute(Context& ctx);
};

struct CreateHookKeyframesInterpolated {
  static constexpr const char* kWays[] = {"linear", "ease_in", "ease_out", "ease_in_out", nullptr};
  static constexpr Widget kCount{.number = 5, .min = 2, .max = 100, .step = 1};

  static constexpr Info info{"CreateHookKeyframesInterpolated",
                             1,
                             "Create Hook Keyframes Interp.",
                             "advanced/hooks/scheduling",
                             "Several keyframes, from one strength to another.",
                             hook_ports::kFlags};
  static constexpr Input<double> strength_start{"strength_start", hook_ports::kEndStrength};
  static constexpr Input<double> strength_end{"strength_end", hook_ports::kEndStrength};
  static constexpr Input<std::string> interpolation{"interpolation", {.choices = kWays}};
  static constexpr Input<double> start{"start_percent", hook_ports::kStart};
  static constexpr Input<double> end{"end_percent", hook_ports::kEnd};
  static constexpr Input<std::int64_t> count{"keyframes_count", kCount};
  static constexpr Input<bool> print{"print_keyframes", hook_ports::kPrint};
  static constexpr Input<Value> previous = hook_ports::previous();
  static constexpr Output<Value> out = hook_ports::keyframes_out();
  static constexpr auto ports = heddle::ports(strength_start, strength_end, interpolation, start,
                                              end, count, print, previous, out);
  static void execute(Context& ctx);
};

struct CreateHookKeyframesFromFloats {
  static constexpr Widget kFloats{
      .extra = R"({"default": -1, "min": -1, "step": 0.001, "forceInput": true})",
      .type = "FLOATS"};

  static constexpr Info info{"CreateHookKeyframesFromFloats",
                             1,
                             "Create Hook Keyframes From Floats",
                             "advanced/hooks/scheduling",
                             "Keyframes of these strengths, evenly spaced.",
                             hook_ports::kFlags};
  static constexpr Input<Value> strengths{"floats_strength", kFloats};
  static constexpr Input<double> start{"start_percent", hook_ports::kStart};
  static constexpr Input<double> end{"end_percent", hook_ports::kEnd};
  static constexpr Input<bool> print{"print_keyframes", hook_ports::kPrint};
  static constexpr Input<Value> previous = hook_ports::previous();
  static constexpr Output<Value> out = hook_ports::keyframes_out();
  static constexpr auto ports = heddle::ports(strengths, start, end, print, previous, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
