#include "told_constants.h"

#include "animate_input.h"
#include "boxes.h"
#include "camera_input.h"
#include "frame_noise.h"
#include "fun_input.h"
#include "guide_inputs.h"
#include "music_input.h"
#include "picture_embeddings.h"
#include "reference_tiles.h"
#include "sample_shapes.h"
#include "scail_input.h"
#include "sound_references.h"
#include "sound_video_input.h"
#include "sources_input.h"
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
  if (!wants_tiles(model_settings(model))) return true;
  std::vector<std::int64_t> counts;
  for (const heddle_tensor_info& info : entry.references)
    counts.push_back(tokens_of_clip(shape_of(info), layout.patch));
  constants.push_back({kReferencePools, HEDDLE_F32, tile_shape(counts)});
  return true;
}

bool tell_states(Constants& constants, const std::string& name,
                 const std::optional<heddle_tensor_info>& told, std::int64_t items) {
  if (!told) return true;
  Shape shape = shape_of(*told);
  if (shape.empty()) return false;
  shape[0] = fitted_rows(shape[0], items);
  constants.push_back({name, told->dtype, shape});
  return true;
}
bool tell_vision(Constants& constants, const std::string& name,
                 const std::optional<blocks::SeenShapes>& seen, std::int64_t items) {
  return !seen || tell_states(constants, name, seen->states, items);
}

// False: a run throws.
bool tell_fun(Constants& constants, const ConditioningInput& input, const EntryShapes& entry,
              const Value& model, const ConcatPlace& place) {
  const bool is_camera = input.kind == ConditioningInput::Kind::kCamera;
  if (is_camera ? !entry.camera : entry.references.empty()) return true;
  const Value settings = model_settings(model);
  const auto shape = is_camera ? camera_shape(entry, settings, place)
                     : settings.get<bool>("reference_stack", false)
                         ? stacked_references_shape(entry, settings, place)
                         : reference_frame_shape(entry, settings, place);
  if (shape) constants.push_back({input.name, HEDDLE_F32, *shape});
  return shape.has_value();
}

// False: a run throws.
bool tell_animate(Constants& constants, const ConditioningInput& input, const EntryShapes& entry,
                  const Value& model, const ConcatPlace& place) {
  const bool is_pose = input.kind == ConditioningInput::Kind::kPose;
  const std::optional<heddle_tensor_info>& told = is_pose ? entry.pose : entry.face;
  if (!told) return true;
  const auto shape = is_pose ? pose_shape(entry, model_settings(model), place)
                             : face_shape(entry, model_settings(model), place);
  if (shape) constants.push_back({input.name, is_pose ? HEDDLE_F32 : told->dtype, *shape});
  return shape.has_value();
}

// False: a run throws.
bool tell_sound_video(Constants& constants, const ConditioningInput& input,
                      const EntryShapes& entry, const Value& model, const ConcatPlace& place) {
  using Kind = ConditioningInput::Kind;
  const bool is_sound = input.kind == Kind::kHeard, is_earlier = input.kind == Kind::kMotion;
  if (!(is_sound ? entry.heard : is_earlier ? entry.motion : entry.followed)) return true;
  const Value settings = model_settings(model);
  const auto shape = is_sound     ? heard_shape(entry, settings, place)
                     : is_earlier ? earlier_frames_shape(entry, settings, place)
                                  : followed_shape(entry, settings, place);
  if (shape) constants.push_back({input.name, HEDDLE_F32, *shape});
  return shape.has_value();
}

// False: a run throws.
bool tell_scail(Constants& constants, const ConditioningInput& input, const EntryShapes& entry,
                const Value& model, const ConcatPlace& place) {
  using Kind = ConditioningInput::Kind;
  const bool is_pose = input.kind == Kind::kHalfPose;
  const std::optional<heddle_tensor_info>& told = is_pose ? entry.pose
                                                  : input.kind == Kind::kPoseMasks
                                                      ? entry.pose_masks
                                                      : entry.reference_masks;
  if (!told) return true;
  const Value settings = model_settings(model);
  const auto shape = is_pose ? half_pose_shape(entry, settings, place)
                             : coloured_masks_shape(*told, settings, place);
  if (shape) constants.push_back({input.name, HEDDLE_F32, *shape});
  return shape.has_value();
}

// False: a run throws.
bool tell_sources(Constants& constants, const ConditioningInput& input, const EntryShapes& entry,
                  const Value& model, const ConcatPlace& place) {
  if (entry.sources.empty()) return true;
  const auto seen = source_shapes(entry, model_settings(model), place.items);
  if (!seen) return false;
  constants.push_back({input.name, HEDDLE_F32, seen->tokens});
  constants.push_back({kSourcePlaces, HEDDLE_F32, seen->places});
  return true;
}

// False: a run throws.
bool tell_music(Constants& constants, const ConditioningInput& input, const EntryShapes& entry,
                const Value& model, const ConcatPlace& place) {
  if (!entry.heard) return true;
  const auto shape = music_shape(entry, model_settings(model), place);
  if (shape) constants.push_back({input.name, HEDDLE_F32, *shape});
  return shape.has_value();
}

// What was seen of pictures, and what goes with a video; none: it is another input. False: it is
// not known yet, or a run throws.
std::optional<bool> tell_shown(Constants& constants, const ConditioningInput& input,
                               const EntryShapes& entry, const Value& model,
                               const ConcatPlace& place) {
  using Kind = ConditioningInput::Kind;
  switch (input.kind) {
    case Kind::kReferences:
      return tell_references(constants, input.name, entry, model, place.items);
    case Kind::kSoundReferences: {
      const auto heard = sound_reference_shapes(entry, place.parts);
      if (!heard || heard->tokens[1] == 0) return heard.has_value();
      constants.push_back({input.name, HEDDLE_F32, heard->tokens});
      constants.push_back({kHeardPositions, HEDDLE_F32, heard->positions});
      if (!wants_tiles(model_settings(model))) return true;
      std::vector<std::int64_t> counts;
      for (const heddle_tensor_info& info : entry.sounds)
        counts.push_back(tokens_of_sound(shape_of(info)));
      constants.push_back({kSoundPools, HEDDLE_F32, tile_shape(counts)});
      return true;
    }
    case Kind::kVision:
      return tell_vision(constants, input.name, entry.vision, place.items);
    case Kind::kPoseVision:
      return tell_vision(constants, input.name, entry.pose_seen, place.items);
    case Kind::kKeptVision:
      return tell_vision(constants, input.name, entry.kept_seen, place.items);
    case Kind::kMusic:
      return tell_music(constants, input, entry, model, place);
    case Kind::kPoseText:
      return tell_states(constants, input.name, entry.pose_text, place.items);
    case Kind::kCamera:
    case Kind::kReferenceFrame:
      return tell_fun(constants, input, entry, model, place);
    case Kind::kPose:
    case Kind::kFace:
      return tell_animate(constants, input, entry, model, place);
    case Kind::kHeard:
    case Kind::kMotion:
    case Kind::kFollowed:
      return tell_sound_video(constants, input, entry, model, place);
    case Kind::kHalfPose:
    case Kind::kPoseMasks:
    case Kind::kReferenceMasks:
      return tell_scail(constants, input, entry, model, place);
    case Kind::kSources:
      return tell_sources(constants, input, entry, model, place);
    default:
      return {};
  }
}

bool is_told(ConditioningInput::Kind kind, const EntryShapes& entry, const ConcatPlace& place) {
  using Kind = ConditioningInput::Kind;
  if (kind == Kind::kGlyphs) return entry.glyphs.has_value();
  if (kind == Kind::kVoice) return entry.voice.has_value();
  if (kind == Kind::kSoundNoise && entry.voice) return true;
  return is_given(kind, entry.scope, place.latent);
}

}  // namespace

std::optional<Constants> constants_of(const EntryShapes& entry,
                                      const std::vector<ConditioningInput>& inputs,
                                      const Value& model, const ConcatPlace& place) {
  using Kind = ConditioningInput::Kind;
  Constants constants;
  const std::optional<PictureLayout> pictures = picture_layout(model_settings(model));
  for (const auto& [kind, name] : inputs) {
    if (const auto is_known = tell_shown(constants, {kind, name}, entry, model, place)) {
      if (!*is_known) return {};
      continue;
    }
    if (kind == Kind::kVace) {
      const auto given = vace_shapes(entry, model_settings(model), place);
      if (!given) return {};
      constants.push_back({name, HEDDLE_F32, given->contexts});
      constants.push_back({kVaceStrength, HEDDLE_F32, given->strength});
      continue;
    }
    if (!is_told(kind, entry, place)) continue;
    if (kind == Kind::kFrameNoise || kind == Kind::kSoundNoise) {
      const std::int64_t before = entry.voice ? shape_of(*entry.voice).at(1) : 0;
      constants.push_back(
          {name, HEDDLE_F32, {frame_noise_count(name, entry.scope, place, before)}});
      continue;
    }
    if (is_guide_input(kind)) {
      constants.push_back(
          {name, guide_input_type(kind), guide_input_shape(kind, entry.scope, video_grid(place))});
      continue;
    }
    if (kind == Kind::kFramePlaces) {
      const std::int64_t frames = place.box ? place.box->size[0] : place.grid[0];
      constants.push_back({name, HEDDLE_F32, {frames}});
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
      constants.push_back({name, HEDDLE_F32, task_shape(model_settings(model), place.items)});
      continue;
    }
    if (kind == Kind::kPositions) {
      constants.push_back({name, HEDDLE_F32, {2, 3}});
      continue;
    }
    if (kind == Kind::kGuidance || kind == Kind::kUnguided || kind == Kind::kFrameTime ||
        kind == Kind::kFirstTimestep || kind == Kind::kLevel || kind == Kind::kMediaStart ||
        kind == Kind::kApart || kind == Kind::kMusicStrength) {
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
    const auto& tensor = kind == Kind::kText     ? std::optional(entry.text)
                         : kind == Kind::kGlyphs ? entry.glyphs
                         : kind == Kind::kVoice  ? entry.voice
                                                 : entry.pooled;
    if (!tensor || tensor->rank == 0) return {};
    Shape shape = shape_of(*tensor);
    shape[0] = fitted_rows(shape[0], place.items);
    constants.push_back({name, tensor->dtype, shape});
  }
  tell_boxes(constants, entry.scope, model);
  return constants;
}

}  // namespace heddle::samplers
