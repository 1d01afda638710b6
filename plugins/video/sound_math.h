// What nodes compute of sounds, in host memory. One call's thread.
#pragma once

#include <span>

#include "plugins/video/values.h"

namespace heddle::video {

// All samples. REQUIRES: row-major in host memory, as what is made here.
inline std::span<float> samples_of(const Sound& sound) {
  return {sound.waveform.data<float>(), static_cast<std::size_t>(sound.waveform.count())};
}

// A new one with the same samples, row-major.
Sound copied(Context& ctx, const Sound& sound);
// The same where it has more than one channel, else the channel twice.
Sound stereo(Context& ctx, const Sound& sound);
// At another rate, as torchaudio resamples.
Sound resampled(Context& ctx, const Sound& sound, std::int64_t rate);
// Brings the one of the lower rate to the other's.
void match_rates(Context& ctx, Sound& one, Sound& two);

// These three throw HEDDLE_INVALID_ARGUMENT where batches or channels do not go together. REQUIRE:
// equal rates.
// Channels of both, as long as the shorter one.
Sound as_channels(Context& ctx, const Sound& one, const Sound& two);
Sound one_after_another(Context& ctx, const Sound& one, const Sound& two);
// By ComfyUI's name: "add", "mean", "subtract", "multiply". As long as the first, and where it
// exceeds 1, scaled to it.
Sound mixed(Context& ctx, const Sound& one, const Sound& two, const std::string& method);

}  // namespace heddle::video
