#include "hook_nodes.h"

#include <cmath>
#include <cstdio>
#include <numbers>

#include "linspace.h"
#include "plugins/blocks/weight_hooks.h"

namespace heddle::samplers {
namespace {

Value or_none(Value value) { return value ? value : made_value(services.value->make_none()); }

template <class... Inputs>
Value combined(Context& ctx, const Inputs&... inputs) {
  std::vector<Value> groups;
  const auto add = [&](const Input<Value>& input) {
    if (ctx.has(input)) groups.push_back(ctx[input]);
  };
  (add(inputs), ...);
  return or_none(blocks::joined_hooks(groups));
}

Value previous_of(Context& ctx, const Input<Value>& input) {
  return ctx.has(input) ? ctx[input] : Value();
}

// ComfyUI computes these in single precision.
std::vector<float> eased(const std::string& way, float from, float to, int count) {
  if (way == "linear") return linspace(from, to, count);
  const float change = to - from;
  std::vector<float> values = linspace(0.0f, 1.0f, count);
  for (float& t : values) {
    if (way == "ease_in")
      t = t * t;
    else if (way == "ease_out")
      t = 1.0f - (1.0f - t) * (1.0f - t);
    else
      t = (1.0f - std::cos(t * float(std::numbers::pi))) / 2.0f;
    t = change * t + from;
  }
  return values;
}

// The first is guaranteed an evaluation, the others are not.
Value with_all(Context& ctx, Value keyframes, const std::vector<double>& strengths,
               const std::vector<float>& starts, bool print) {
  for (std::size_t i = 0; i < strengths.size(); ++i) {
    keyframes = blocks::with_keyframe(
        keyframes, {.strength = strengths[i], .start = starts[i], .guaranteed = i == 0 ? 1 : 0});
    char line[80];
    std::snprintf(line, sizeof line, "hook keyframe: start_percent %.9g, strength %.9g",
                  double(starts[i]), strengths[i]);
    if (print) log(HEDDLE_INFO, ctx.node() + ": " + line);
  }
  return keyframes ? keyframes : list_of({});
}

std::vector<double> floats_of(const Value& value) {
  std::vector<double> floats;
  if (!value.is(HEDDLE_KIND_LIST)) return {value.as<double>()};
  for (std::uint32_t i = 0; i < value.count(); ++i) floats.push_back(value.item(i).as<double>());
  return floats;
}

}  // namespace

void CombineHooks2::execute(Context& ctx) { ctx[out] = combined(ctx, a, b); }
void CombineHooks4::execute(Context& ctx) { ctx[out] = combined(ctx, a, b, c, d); }
void CombineHooks8::execute(Context& ctx) { ctx[out] = combined(ctx, a, b, c, d, e, f, g, h); }

void SetHookKeyframes::execute(Context& ctx) {
  const Value given = ctx[hooks];
  const bool any = ctx.has(keyframes) && ctx[keyframes].is(HEDDLE_KIND_LIST);
  ctx[out] = any && given.is(HEDDLE_KIND_LIST) ? blocks::with_keyframes(given, ctx[keyframes])
                                               : or_none(given);
}

void CreateHookKeyframe::execute(Context& ctx) {
  ctx[out] = blocks::with_keyframe(previous_of(ctx, previous),
                                   {.strength = ctx[strength], .start = ctx[start]});
}

void CreateHookKeyframesInterpolated::execute(Context& ctx) {
  const auto number = int(ctx[count]);
  const std::vector<float> strengths =
      eased(ctx[interpolation], float(ctx[strength_start]), float(ctx[strength_end]), number);
  ctx[out] = with_all(ctx, previous_of(ctx, previous), {strengths.begin(), strengths.end()},
                      linspace(float(ctx[start]), float(ctx[end]), number), ctx[print]);
}

void CreateHookKeyframesFromFloats::execute(Context& ctx) {
  const std::vector<double> floats = floats_of(ctx[strengths]);
  ctx[out] = with_all(ctx, previous_of(ctx, previous), floats,
                      linspace(float(ctx[start]), float(ctx[end]), int(floats.size())), ctx[print]);
}

}  // namespace heddle::samplers
