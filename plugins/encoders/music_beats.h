// Of an envelope of a music (music_spectrum.h) its tempo, where sounds begin and where beats are.
// Formulas: librosa's feature.tempo(), onset_detect() and beat_track() (D. Ellis, Beat Tracking by
// Dynamic Programming, 2007) with their defaults, as ComfyUI's WanDancerEncodeAudio has them. One
// call's thread.
#pragma once

#include "music_spectrum.h"

namespace heddle::encoders {

inline constexpr double kUsualTempo = 120;

// Beats a minute of an envelope with a frame for each kMusicHop points of `rate` a second. start:
// what it is likely to be. 120 of fewer than 20 frames.
double tempo_of(const MusicWork& work, const MusicNumbers& envelope, double rate, double start);

// (frames): 1 where a sound begins, 0 elsewhere.
MusicNumbers onsets_of(const MusicWork& work, const MusicNumbers& envelope);
// (frames): 1 where a beat is. tempo: in beats a minute, above 0.
MusicNumbers beats_of(const MusicWork& work, const MusicNumbers& envelope, double tempo);

}  // namespace heddle::encoders
