// Entries of a CONDITIONING as a model's constant inputs. One call's thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/model.hpp>

#include "concat_input.h"
#include "reference_input.h"

namespace heddle::samplers {

// What a model reads besides x and timestep, and where in a conditioning it stands.
struct ConditioningInput {
  enum class Kind {
    kText,
    kPooled,
    kGuidance,
    kUnguided,
    kPositions,
    kConcat,
    kReferences,
    kSizes,
    kVision,
    kGlyphs,
    kFrameTime,
    kFirstTimestep,
    kFrameNoise,
    kSoundNoise,
    kVoice,
    kGuideFrames,
    kTokenRows,
    kTokenPlaces,
    kGuideWeights,
    kVace,
    kCamera,
    kReferenceFrame,
    kPose,
    kFace,
    kPoseText,
    kPoseVision,
    kHeard,
    kMotion,
    kFollowed,
    kTask,
    kLevel,
    kPictureRows,
    kSoundReferences,
    kMediaStart,
    kHalfPose,
    kPoseMasks,
    kReferenceMasks,
    kApart,
    kSources,
    kMusic,
    kMusicStrength,
    kKeptVision,
    kFramePlaces
  } kind;
  std::string name;  // the model's
};
// Throws when the model reads something that the samplers cannot give it. Positions, and what it
// reads beside the point, are only among them where the model's settings tell of them.
std::vector<ConditioningInput> conditioning_inputs(const Value& model);

// The field of an entry with the CLIP_VISION_OUTPUT that models with an input "vision" read.
inline constexpr const char* kVisionOutput = "clip_vision_output";
// The field with byT5's states (1, G, W) of what is written in a video, which models with an input
// "byt5" and the setting byt5_width read.
inline constexpr const char* kGlyphStates = "conditioning_byt5small";

// The input with the level of a video's first frame, which is given, and the field of an entry that
// tells it.
inline constexpr const char* kFirstTimestep = "first_timestep";
inline constexpr const char* kGuidingFrame = "guiding_frame_index";

// The input with what each frame of the latent has of the level, and the axis of frames there.
inline constexpr const char* kFrameNoise = "frame_noise";
inline constexpr std::int64_t kFramesAxis = 2;

// The input (K, 2) with the pictures at which the latent's last K frames begin and end, and the
// field of an entry, a list of such pairs, that tells them. A pair has, as a third number, how many
// rows and columns of the latent a token of the frame is for, where that is not one; the input is
// (K, 3) then.
inline constexpr const char* kGuideFrames = "guide_frames";
inline constexpr const char* kKeyframes = "keyframe_idxs";

// The input (T, 1) with 1 at tokens of the text that are of a picture, and the field of an entry, a
// list of their beginnings and ends in pairs.
inline constexpr const char* kPictureRows = "picture_rows";
inline constexpr const char* kImageSpans = "image_spans";

// The input that goes with "references".
// Of models whose steps are distilled: the level that a step goes to.
inline constexpr const char* kTargetTimestep = "target_timestep";
inline constexpr const char* kReferencePositions = "reference_positions";
// Of sounds that the model is shown, and their places; when what it draws begins behind all that it
// is shown.
inline constexpr const char* kSoundReferences = "sound_references";
inline constexpr const char* kHeardPositions = "sound_reference_positions";
inline constexpr const char* kMediaStart = "media_start";
inline constexpr const char* kTextStart = "text_start";
inline constexpr const char* kReferenceTimestep = "reference_timestep";

// What ControlNets read besides: the hint, and of which kind it is.
inline constexpr const char* kHint = "hint";
inline constexpr const char* kMode = "mode";
// Some are told it as a number for each kind that they know: 1 where it is the hint's.
inline constexpr const char* kKinds = "kinds";
// What some read of the point: what their denoiser makes of it before its first block.
inline constexpr const char* kTokens = "tokens";

// Whether the model is given this input for an entry: a record with "unguided" and
// "reference_latents", or empty. latent: as of ConcatPlace.
bool is_given(ConditioningInput::Kind kind, const Value& entry, const Value& latent = {});

// Rows that a tensor of `rows` rows has when it is given to a model with a batch of `items`, as in
// ComfyUI: repeated or cut to the batch. A single row serves the whole batch as it is.
constexpr std::int64_t fitted_rows(std::int64_t rows, std::int64_t items) {
  return rows == 1 ? 1 : items;
}

// A tensor with so many rows: those of fitted_rows(). Throws where it has none.
Tensor fit_batch(Context& ctx, const Tensor& tensor, std::int64_t items);

// Refuses a text whose states are not as wide as the model reads them, saying which encoder it
// takes.
void check_text_width(std::int64_t width, const Value& model);

// What the model reads of an entry, for the batch of a place: a record by the model's input names.
// Throws when the entry asks for something that the samplers do not do, or lacks something that the
// model reads.
Value constants_of(Context& ctx, const Value& entry, const Value& model, const ConcatPlace& place);
// The entries of a list, at least one.
std::vector<Value> entries_of(const Value& list);

}  // namespace heddle::samplers
