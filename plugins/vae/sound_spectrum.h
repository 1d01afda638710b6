// plugins/vae/sound_spectrum.h - what LTX 2's audio encoder reads: the logarithms of how loud a
// sound's bands are on a mel scale. Sources: torchaudio's MelSpectrogram (frames centred, ends
// mirrored, Hann's window, magnitudes, Slaney's scale and areas) as the publishers of the model
// call it; M. Slaney, Auditory Toolbox, 1998. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/blocks/mel_bands.h"

namespace heddle::vae {

struct SpectrumNumbers {
  std::int64_t rate = 16000;   // points a second
  std::int64_t window = 1024;  // points of a frame, a power of two
  std::int64_t hop = 160;      // points from one frame to the next
  std::int64_t bands = 64;     // up to half the rate; at most half the window
};

// Frames of so many points.
inline std::int64_t spectrum_frames(std::int64_t points, const SpectrumNumbers& numbers) {
  return 1 + points / numbers.hop;
}

// At work on sounds with these numbers.
class SoundSpectrum {
 public:
  // Throws where a number is below 1 (the rate: 2), the window is no power of two or beyond 65,536,
  // or there are more bands than half of it.
  explicit SoundSpectrum(const SpectrumNumbers& numbers);
  // One channel, (frames, bands), at least ln 1e-5 each. Throws where the sound is so short that
  // its ends cannot be mirrored.
  void log_bands(std::span<const float> sound, std::span<float> out) const;

 private:
  SpectrumNumbers n_;
  std::vector<double> window_;
  std::vector<blocks::MelBand> bands_;
};

}  // namespace heddle::vae
