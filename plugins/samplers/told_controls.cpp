#include "told_controls.h"

#include <algorithm>

#include "control_hint.h"
#include "plugins/blocks/autoencoder.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

double numbers_of_shape(const Shape& shape) {
  double count = 1;
  for (const std::int64_t size : shape) count *= double(size);
  return count;
}

// The calls of the autoencoder and what the ControlNet reads; none where something is not known.
std::optional<Constants> told_constants(const ControlledSet& asked, const Control& control,
                                        std::vector<ToldCall>& calls,
                                        std::vector<ToldHint>& hints) {
  const ConcatPlace place{.items = asked.point.front(),
                          .grid = Shape(asked.point.begin() + 2, asked.point.end()),
                          .box = {}};
  EntryShapes entry = *asked.entry;
  if (const auto text = info_of(entry.scope.field(kControlText))) entry.text = *text;
  std::optional<Constants> constants =
      constants_of(entry, conditioning_inputs(control.model), control.model, place);
  const std::optional<HintShapes> hint = hint_shapes(control, place.grid, place.items);
  if (!constants || !hint) return {};
  constants->push_back({kHint, HEDDLE_F32, hint->latent});
  const auto kinds = model_settings(control.model).get<std::int64_t>("control_modes", 0);
  if (model_takes(control.model, kKinds)) constants->push_back({kKinds, HEDDLE_F32, {kinds}});
  if (control.mode && kinds > 0) constants->push_back({kMode, HEDDLE_I32, {1}});
  const bool is_told = std::ranges::any_of(hints, [&](const ToldHint& told) {
    return told.model.raw() == control.model.raw() && told.place == control.place &&
           told.vae.raw() == control.vae.raw() && told.pixels == hint->pixels;
  });
  if (is_told) return constants;
  hints.push_back({control.model, control.vae, control.place, hint->pixels});
  if (model_settings(control.model).get<bool>("hint_pixels", false)) return constants;
  const Value encoder = control.vae.field("encoder");
  if (!encoder.is(HEDDLE_KIND_MODEL)) return constants;
  ToldCall& call = calls.emplace_back();
  call.model = encoder;
  call.sets.push_back({{{"image", HEDDLE_F32, hint->pixels}}, {}});
  const std::optional<heddle_tensor_info> picture = info_of(control.hint);
  call.shown = numbers_of_shape(shape_of(*picture)) + 2 * numbers_of_shape(hint->pixels);
  return constants;
}

}  // namespace

std::vector<EntryShapes> with_inherited_of(const std::vector<EntryShapes>& positive,
                                           std::vector<EntryShapes> entries) {
  const auto scopes = [](const std::vector<EntryShapes>& list) {
    std::vector<Value> values;
    for (const EntryShapes& entry : list)
      values.push_back(entry.mask ? Record(entry.scope).set("mask", value_of(true)).value()
                                  : entry.scope);
    return values;
  };
  for (const char* key : kInherited)
    for (const Inherited& one : inherited(key, scopes(positive), scopes(entries))) {
      Value& scope = entries[one.to].scope;
      scope = Record(scope).set(key, positive[one.from].scope.field(key)).value();
    }
  return entries;
}

std::optional<ToldControls> told_controls(const std::vector<ControlledSet>& sets,
                                          const NoiseLevels& levels, double sigma,
                                          std::size_t steps, SharedControls& run) {
  std::vector<ControlledEntry> entries;
  for (const ControlledSet& set : sets) entries.push_back({set.entry->scope, set.denoiser});
  const std::vector<ControlCall> asked = control_calls(entries, levels, sigma, run.models);
  ToldControls told;
  for (const ControlCall& call : asked) {
    ToldCall one{.model = call.model, .steps = steps, .sets = {}};
    for (const ControlCall::Member& member : call.members) {
      const ControlledSet& set = sets[member.set];
      std::optional<Constants> constants =
          told_constants(set, member.control, told.calls, run.hints);
      if (!constants) return {};
      Constants steps_of;
      if (model_takes(call.model, "x")) steps_of.push_back({"x", HEDDLE_F32, set.point});
      if (model_takes(call.model, kTokens))
        steps_of.push_back({kTokens, HEDDLE_F32, token_shape(set.denoiser, set.point)});
      one.sets.push_back({std::move(*constants), std::move(steps_of)});
    }
    told.calls.push_back(std::move(one));
  }
  for (std::size_t set = 0; set < sets.size(); ++set) {
    told.residuals.push_back(residual_shapes(asked, set, sets[set].denoiser, sets[set].point));
    for (const Infer::Named& one : told.residuals.back())
      told.calls.back().kept += numbers_of_shape(one.shape);
  }
  return told;
}

}  // namespace heddle::samplers
