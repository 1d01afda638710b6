// The hooks of a CLIP value (heddle/diffusion/values.h): what they make of its encoders, and when.
// Any thread.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::encoders {

// The CLIP as it encodes a text for a part of the way.
struct HookedClip {
  Value clip;                                      // without hooks of its own
  std::optional<std::pair<double, double>> range;  // none: for all of it
};
// One, or one for each part of the way in which the hooks are equally strong. Throws what
// blocks::hooked_model() throws.
std::vector<HookedClip> hooked_clips(const Value& clip);

// Fields of a conditioning's entry that such a CLIP adds.
std::vector<std::pair<const char*, Value>> fields_of(const Value& clip, const HookedClip& hooked);

struct SetClipHooks {
  static constexpr Widget kApply{.number = 1, .extra = R"({"advanced": true})"};
  static constexpr Widget kSchedule{.extra = R"({"advanced": true})"};

  static constexpr Info info{"SetClipHooks",
                             1,
                             "Set CLIP Hooks",
                             "advanced/hooks/clip",
                             "Hooks for the text encoders, and for what they encode.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<Value> clip{"clip", HEDDLE_PORT_PASS, "", "CLIP"};
  static constexpr Input<bool> apply_to_conds{"apply_to_conds", kApply};
  static constexpr Input<bool> schedule_clip{"schedule_clip", kSchedule};
  static constexpr Input<Value> hooks{"hooks", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL, "",
                                      "HOOKS"};
  static constexpr Output<Value> out{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip, apply_to_conds, schedule_clip, hooks, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
