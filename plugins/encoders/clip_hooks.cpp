#include "clip_hooks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>

#include "plugins/blocks/weight_hooks.h"

namespace heddle::encoders {
namespace {

using blocks::HookKeyframe;
using blocks::WeightHook;

// Python's math.isclose().
bool is_close(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// How strong a hook is from one part of the way to another.
struct Span {
  double begin = 0.0, end = 1.0, strength = 1.0;
};

// ComfyUI's: keyframes as strong as the one before make no span of their own.
std::vector<Span> spans_of(const WeightHook& hook) {
  if (hook.keyframes.empty()) return {Span()};
  std::vector<Span> spans;
  const HookKeyframe* now = &hook.keyframes.front();
  for (const HookKeyframe& keyframe : hook.keyframes) {
    if (keyframe.start > now->start && !is_close(keyframe.strength, now->strength)) {
      spans.push_back({now->start, keyframe.start, now->strength});
      now = &keyframe;
    } else if (keyframe.start == now->start) {
      now = &keyframe;
    }
  }
  if (!is_close(now->start, 1.0)) spans.push_back({now->start, 1.0, now->strength});
  return spans;
}

// Before its first keyframe a hook is as strong as without any.
double strength_in(const std::vector<Span>& spans, double begin, double end) {
  for (const Span& span : spans)
    if (span.begin < end && span.end > begin) return span.strength;
  return 1.0;
}

Value with_strengths(const Value& clip, const std::vector<WeightHook>& hooks,
                     const std::vector<double>& strengths) {
  std::vector<Value> encoders;
  const Value list = clip.field("encoders");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    const std::string name = encoder.get<std::string>("name", "");
    Value model = encoder.field("model");
    for (std::size_t k = 0; k < hooks.size(); ++k) {
      const double strength = hooks[k].strength_clip * strengths[k];
      if (strength != 0.0) model = blocks::hooked_model(model, hooks[k], name.c_str(), strength);
    }
    encoders.push_back(Record(encoder).set("model", model).value());
  }
  return Record(clip).set("encoders", list_of(encoders)).value();
}

}  // namespace

std::vector<HookedClip> hooked_clips(const Value& clip) {
  const Value own = clip.field("clip_hooks");
  if (!own) return {{clip, {}}};
  const std::vector<WeightHook> hooks = blocks::read_hooks(own.field("hooks"));
  if (!own.get<bool>("scheduled", false))
    return {{with_strengths(clip, hooks, std::vector<double>(hooks.size(), 1.0)), {}}};
  std::vector<std::vector<Span>> spans;
  std::set<double> ends{0.0};
  for (const WeightHook& hook : hooks) {
    for (const Span& span : spans.emplace_back(spans_of(hook))) {
      ends.insert(span.begin);
      ends.insert(span.end);
    }
  }
  std::vector<HookedClip> parts;
  for (auto begin = ends.begin(), end = std::next(begin); end != ends.end(); ++begin, ++end) {
    std::vector<double> strengths;
    for (const std::vector<Span>& each : spans)
      strengths.push_back(strength_in(each, *begin, *end));
    parts.push_back({with_strengths(clip, hooks, strengths), std::pair(*begin, *end)});
  }
  return parts;
}

std::vector<std::pair<const char*, Value>> fields_of(const Value& clip, const HookedClip& hooked) {
  std::vector<std::pair<const char*, Value>> fields;
  if (clip.has("hooks")) fields.emplace_back("hooks", clip.field("hooks"));
  if (hooked.range) {
    fields.emplace_back("clip_start_percent", value_of(hooked.range->first));
    fields.emplace_back("clip_end_percent", value_of(hooked.range->second));
  }
  return fields;
}

void SetClipHooks::execute(Context& ctx) {
  const Value given = ctx.has(hooks) ? ctx[hooks] : Value();
  Record changed(ctx[clip]);
  if (given.is(HEDDLE_KIND_LIST)) {
    if (ctx[apply_to_conds]) changed.set("hooks", given);
    changed.set(
        "clip_hooks",
        Record().set("hooks", given).set("scheduled", value_of(ctx[schedule_clip])).value());
  }
  ctx[out] = changed.value();
}

}  // namespace heddle::encoders
