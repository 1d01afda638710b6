// plugins/blocks/weight_hooks.h - HOOKS and HOOK_KEYFRAMES (heddle/diffusion/values.h): what
// changes a model's weights for some conditionings only, and how much of it counts when. Any
// thread.
#pragma once

#include <heddle/node.hpp>
#include <string>
#include <vector>

namespace heddle::blocks {

// From here on a hook counts so much, until a later keyframe takes over.
struct HookKeyframe {
  double strength = 1.0;  // times that of the hook
  double start = 0.0;     // part of the way from noise to picture
  // Evaluations for which it counts at least, once it has begun within the run.
  std::int64_t guaranteed = 1;
};
// Sorted by start. Empty where the value is.
std::vector<HookKeyframe> read_keyframes(const Value& keyframes);
// The given ones and one more, behind those with the same start.
Value with_keyframe(const Value& keyframes, const HookKeyframe& keyframe);

struct WeightHook {
  std::string id;  // hooks of one id are the same change, and count once
  Value record;
  double strength_model = 1.0, strength_clip = 1.0;
  std::vector<HookKeyframe> keyframes;  // none: it counts all the way
  std::string clock;                    // hooks of one clock go through their keyframes together
};
// None where the value is empty or none.
std::vector<WeightHook> read_hooks(const Value& hooks);

// What is known of a change besides its id; `before` are the hooks that it is put behind, whose
// ids become part of its own: the same change put behind itself counts twice, as in ComfyUI.
struct NewHook {
  std::string kind, file;  // of heddle/diffusion/weight_hooks.h; a path
  double strength_model = 1.0, strength_clip = 1.0;
};
Value with_hook(const Value& before, const NewHook& hook);
// All of them behind one another, of each id the first. Empty where all values are empty or none.
Value joined_hooks(const std::vector<Value>& groups);
// The same hooks under these keyframes, whatever they had.
Value with_keyframes(const Value& hooks, const Value& keyframes);

// The model with the hook's change added `strength` times. encoder: the name of the text encoder
// whose model it is; nullptr: a diffusion model. Throws where no plugin reads such hooks, and what
// heddle_weight_hooks_desc::apply fails with.
Value hooked_model(const Value& model, const WeightHook& hook, const char* encoder,
                   double strength);

}  // namespace heddle::blocks
