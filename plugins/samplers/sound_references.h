// Sounds that MiniMax H3 is shown beside the video that it draws: the entry's reference_sounds, of
// which each tells its time as clips do (reference_input.h). A token is a moment of one of two
// loudspeakers: first all of the left one, in the first column of the video beside which it stands,
// then those of the right one, in the last. One call's thread.
#pragma once

#include "reference_input.h"

namespace heddle::samplers {

// parts: of pictures and their sound that are drawn. None where one that is told of is no sound of
// two loudspeakers.
std::optional<ReferenceTokenShapes> sound_reference_shapes(const blocks::EntryShapes& entry,
                                                           const std::vector<Shape>& parts);
// Of an entry with reference_sounds. Throws where one is no such sound, or tells no time.
ReferenceTokens sound_reference_tokens(Context& ctx, const Value& entry,
                                       const std::vector<Shape>& parts);

}  // namespace heddle::samplers
