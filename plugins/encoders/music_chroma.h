// Which of the twelve notes a music has, frame by frame. Formulas: librosa's chroma_cens()
// (M. Mueller, S. Ewert, Chroma Toolbox, 2011) with its defaults: magnitudes at 36 steps of seven
// octaves by filters of a constant quality, tuned to the music (estimate_tuning()), as ComfyUI's
// WanDancerEncodeAudio has them. One call's thread.
#pragma once

#include "music_spectrum.h"

namespace heddle::encoders {

inline constexpr std::int64_t kNotes = 12, kNoteSteps = 36, kOctaves = 7;

// (frames, kNotes) of a sound that is taken for one of kMusicRate points a second.
MusicNumbers chroma_of(const MusicWork& work, std::span<const float> sound);

}  // namespace heddle::encoders
