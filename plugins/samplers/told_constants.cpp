#include "told_constants.h"

#include "boxes.h"
#include "picture_embeddings.h"
#include "sample_shapes.h"
#include "vace_input.h"

namespace heddle::samplers {
namespace {

// False: their shapes are not known yet.
bool tell_references(Constants& constants, const std::string& name, const EntryShapes& entry,
                     const Value& model, std::int64_t items) {
  if (entry.references.empty()) return true;
  const ReferenceLayout layout = *reference_layout(model_settings(model));
  if (layout.slots > 0) {
    const auto placed = placed_shapes(entry, layout, items);
    if (!placed) return false;
    for (const PlacedInput& input : *placed)
      constants.push_back({input.name, input.dtype, input.shape});
    return true;
  }
  const auto shown = reference_shapes(entry, layout, items);
  if (!shown) return false;
  constants.push_back({name, HEDDLE_F32, shown->tokens});
  constants.push_back({kReferencePositions, HEDDLE_F32, shown->positions});
  if (shown->has_text_start) constants.push_back({kTextStart, HEDDLE_F32, {1}});
  if (shown->has_timestep) constants.push_back({kReferenceTimestep, HEDDLE_F32, {1}});
  return true;
}

bool tell_vision(Constants& constants, const std::string& name, const EntryShapes& entry,
                 std::int64_t items) {
  if (!entry.vision) return true;
  Shape shape = shape_of(entry.vision->states);
  if (shape.empty()) return false;
  shape[0] = fitted_rows(shape[0], items);
  constants.push_back({name, entry.vision->states.dtype, shape});
  return true;
}

}  // namespace

std::optional<Constants> constants_of(const EntryShapes& entry,
                                      const std::vector<ConditioningInput>& inputs,
                                      const Value& model, const ConcatPlace& place) {
  using Kind = ConditioningInput::Kind;
  Constants constants;
  const std::optional<PictureLayout> pictures = picture_layout(model_settings(model));
  for (const auto& [kind, name] : inputs) {
    if (kind == Kind::kReferences) {
      if (!tell_references(constants, name, entry, model, place.items)) return {};
      continue;
    }
    if (kind == Kind::kGlyphs) continue;
    if (kind == Kind::kVision) {
      if (!tell_vision(constants, name, entry, place.items)) return {};
      continue;
    }
    if (kind == Kind::kVace) {
      const auto given = vace_shapes(entry, model_settings(model), place);
      if (!given) return {};
      constants.push_back({name, HEDDLE_F32, given->contexts});
      constants.push_back({kVaceStrength, HEDDLE_F32, given->strength});
      continue;
    }
    if (!is_given(kind, entry.scope, place.latent)) continue;
    if (kind == Kind::kFrameNoise) {
      // Of the pictures, or of their sound, each frame or the most of them.
      const std::size_t part = name.starts_with("audio_") ? 1 : 0;
      const std::int64_t frames = !place.parts.empty() ? place.parts[part][2]
                                  : place.box          ? place.box->size.front()
                                                       : place.grid.front();
      constants.push_back({name, HEDDLE_F32, {name.ends_with("_most") ? 1 : frames}});
      continue;
    }
    if (kind == Kind::kGuideFrames) {
      constants.push_back({name, HEDDLE_F32, {entry.scope.field(kKeyframes).count(), 2}});
      continue;
    }
    if (kind == Kind::kPictureRows) {
      if (entry.text.rank < 2) return {};
      constants.push_back({name, HEDDLE_F32, {entry.text.shape[1], 1}});
      continue;
    }
    if (kind == Kind::kSizes) {
      const auto count = model_settings(model).get<std::int64_t>("size_numbers", 0);
      constants.push_back({name, HEDDLE_F32, {1, count}});
      continue;
    }
    if (kind == Kind::kTask) {
      const auto count = std::int64_t(model_settings(model).field("task_numbers").count());
      constants.push_back({name, HEDDLE_F32, {1, count}});
      continue;
    }
    if (kind == Kind::kPositions) {
      constants.push_back({name, HEDDLE_F32, {2, 3}});
      continue;
    }
    if (kind == Kind::kGuidance || kind == Kind::kUnguided || kind == Kind::kFrameTime ||
        kind == Kind::kLevel) {
      constants.push_back({name, kind == Kind::kLevel ? HEDDLE_I32 : HEDDLE_F32, {1}});
      continue;
    }
    if (kind == Kind::kConcat) {
      constants.push_back(
          {name, HEDDLE_F32, concat_shape(entry, *concat_layout(model_settings(model)), place)});
      continue;
    }
    if (kind == Kind::kPooled && is_of_pictures(entry.scope, pictures)) {
      constants.push_back({name, HEDDLE_F32, {1, pictures->pooled}});
      continue;
    }
    const auto& tensor = kind == Kind::kText ? std::optional(entry.text) : entry.pooled;
    if (!tensor || tensor->rank == 0) return {};
    Shape shape = shape_of(*tensor);
    shape[0] = fitted_rows(shape[0], place.items);
    constants.push_back({name, tensor->dtype, shape});
  }
  tell_boxes(constants, entry.scope, model);
  return constants;
}

}  // namespace heddle::samplers
