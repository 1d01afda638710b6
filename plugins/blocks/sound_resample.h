// plugins/blocks/sound_resample.h - sound at another rate: windowed sinc filters, as torchaudio's
// resample() has them (6 zero crossings, 0.99 of the lower band, Hann's window). Source:
// J. O. Smith, Digital Audio Resampling, 2002. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::blocks {

// Points that `count` of them become, from one rate to another: rounded up. REQUIRES: rates > 0.
std::int64_t resampled_count(std::int64_t count, std::int64_t from, std::int64_t to);
// One channel, into resampled_count() points.
void resample_sound(std::span<const float> sound, std::int64_t from, std::int64_t to,
                    std::span<float> out);

}  // namespace heddle::blocks
