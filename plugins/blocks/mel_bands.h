// plugins/blocks/mel_bands.h - what bands of a mel scale take of a sound's frequencies: triangles
// of equal areas, up to half the rate, by Slaney's scale. Source: M. Slaney, Auditory Toolbox,
// 1998, as torchaudio's and librosa's mel filters (norm "slaney", mel_scale "slaney"). Pure; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::blocks {

// Its shares of the frequencies from number `begin` on; none where the band lies between two.
struct MelBand {
  std::size_t begin = 0;
  std::vector<double> shares;
};

// Of a spectrum of window / 2 + 1 frequencies of frames of `window` points. REQUIRES: rate and
// window at least 2, bands at least 1.
std::vector<MelBand> mel_bands(std::int64_t rate, std::int64_t window, std::int64_t bands);

}  // namespace heddle::blocks
