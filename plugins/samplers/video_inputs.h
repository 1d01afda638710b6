// What models of videos read besides a text, by the field of a conditioning's entry that it comes
// from: of Wan Fun (fun_input.h), Wan Animate (animate_input.h) and Wan S2V (sound_video_input.h),
// SCAIL 2 (scail_input.h) and WanDancer (music_input.h). One call's thread.
#pragma once

#include "conditioning.h"

namespace heddle::samplers {

// The kind of such an input of a model with these settings; none: it is another one.
std::optional<ConditioningInput::Kind> video_input_kind(const std::string& name,
                                                        const Value& settings);
// Whether it is one of these.
bool is_video_input(ConditioningInput::Kind kind);
// The field that it comes from; nullptr: it is another one, or the last of reference_latents.
const char* video_field(ConditioningInput::Kind kind);
// Of an entry that has the field.
Tensor video_input_of(Context& ctx, ConditioningInput::Kind kind, const Value& entry,
                      const Value& settings, const ConcatPlace& place);

// Whether an input is pictures or latents that lie beside the point.
bool is_shown_input(const std::string& name);

}  // namespace heddle::samplers
