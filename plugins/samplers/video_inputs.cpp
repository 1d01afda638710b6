#include "video_inputs.h"

#include <algorithm>
#include <string_view>

#include "animate_input.h"
#include "fun_input.h"
#include "music_input.h"
#include "scail_input.h"
#include "sound_video_input.h"
#include "sources_input.h"
#include "vision_input.h"

namespace heddle::samplers {
namespace {

using InputKind = ConditioningInput::Kind;

// The name of an input, the setting that models with it have, and the field that it comes from.
struct VideoInput {
  std::string_view name;
  const char *setting, *field;
  InputKind kind;
};
constexpr VideoInput kVideoInputs[] = {
    {"camera", "camera_numbers", kCameraConditions, InputKind::kCamera},
    {"reference", "reference_frame", nullptr, InputKind::kReferenceFrame},
    {"pose", "reads_poses", kPoseLatent, InputKind::kPose},
    {"face", "face_side", kFacePixels, InputKind::kFace},
    {kHeardInput, kHeardStates, kHeardSound, InputKind::kHeard},
    {kEarlierInput, kHeardStates, kEarlierLatent, InputKind::kMotion},
    {kFollowedInput, kHeardStates, kFollowedLatent, InputKind::kFollowed},
    {kHalfPoseInput, kMaskChannels, kPoseLatent, InputKind::kHalfPose},
    {kPoseMasksInput, kMaskChannels, kPoseMasks, InputKind::kPoseMasks},
    {kReferenceMasksInput, kMaskChannels, kReferenceMasks, InputKind::kReferenceMasks},
    {kApartInput, kMaskChannels, kReferencesInLine, InputKind::kApart},
    {kMusicInput, kMusicNumbers, kHeardSound, InputKind::kMusic},
    {kMusicStrength, kMusicNumbers, kMusicScale, InputKind::kMusicStrength},
    {kKeptVision, kMusicNumbers, kKeptSeen, InputKind::kKeptVision},
    {kFramePlaces, kMusicNumbers, kFrameRate, InputKind::kFramePlaces},
};
constexpr std::string_view kShownInputs[] = {
    "concat",       "vace",       "camera",       "pose",          kEarlierInput,
    kFollowedInput, "references", kHalfPoseInput, kPoseMasksInput, kReferenceMasksInput,
    kSources};

const VideoInput* video_input_at(InputKind kind) {
  const VideoInput* const one = std::ranges::find(kVideoInputs, kind, &VideoInput::kind);
  return one == std::end(kVideoInputs) ? nullptr : one;
}

}  // namespace

std::optional<InputKind> video_input_kind(const std::string& name, const Value& settings) {
  for (const VideoInput& input : kVideoInputs)
    if (name == input.name && settings.has(input.setting)) return input.kind;
  return {};
}

bool is_video_input(InputKind kind) { return video_input_at(kind) != nullptr; }

const char* video_field(InputKind kind) {
  const VideoInput* const input = video_input_at(kind);
  return input == nullptr ? nullptr : input->field;
}

Tensor video_input_of(Context& ctx, InputKind kind, const Value& entry, const Value& settings,
                      const ConcatPlace& place) {
  const LatentFormat format = latent_format(settings);
  switch (kind) {
    case InputKind::kCamera:
      return camera_of(ctx, entry, settings, place);
    case InputKind::kFace:
      return face_of(ctx, entry, settings, place);
    case InputKind::kPose:
      return pose_of(ctx, entry, format, place);
    case InputKind::kHeard:
      return heard_of(ctx, entry, settings, place);
    case InputKind::kMotion:
      return earlier_frames_of(ctx, entry, format, place);
    case InputKind::kFollowed:
      return followed_of(ctx, entry, format, place);
    case InputKind::kHalfPose:
      return half_pose_of(ctx, entry, settings, place);
    case InputKind::kPoseMasks:
    case InputKind::kReferenceMasks:
      return coloured_masks_of(ctx, entry, video_field(kind), settings, place);
    case InputKind::kMusic:
      return music_of(ctx, entry, settings, place);
    case InputKind::kMusicStrength:
      return music_strength_of(ctx, entry);
    case InputKind::kKeptVision:
      return vision_states(ctx, entry.field(kKeptSeen), settings, place.items);
    case InputKind::kFramePlaces:
      return frame_places_of(ctx, entry, place);
    default:
      if (settings.get<bool>("reference_stack", false))
        return stacked_references_of(ctx, entry, settings, place);
      return reference_frame_of(ctx, entry, settings, place);
  }
}

bool is_shown_input(const std::string& name) {
  return std::ranges::find(kShownInputs, name) != std::end(kShownInputs) ||
         name.starts_with("reference.");
}

}  // namespace heddle::samplers
