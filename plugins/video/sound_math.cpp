#include "plugins/video/sound_math.h"

#include <algorithm>
#include <cmath>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/video/resample_sound.h"

namespace heddle::video {
namespace {

Sound new_sound(Context& ctx, std::int64_t batch, std::int64_t channels, std::int64_t samples,
                std::int64_t rate) {
  return {ctx.make_host({batch, channels, samples}, HEDDLE_F32), rate};
}

std::string size_of(const Sound& sound) {
  return std::to_string(sound.batch()) + " x " + std::to_string(sound.channels()) + " channels";
}

[[noreturn]] void refuse_pair(const Sound& one, const Sound& two) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "the sounds do not go together: one has " + size_of(one) +
                                           ", the other " + size_of(two) + ".");
}

// As PyTorch broadcasts: equal, or 1.
std::int64_t common(std::int64_t a, std::int64_t b, const Sound& one, const Sound& two) {
  if (a != b && a != 1 && b != 1) refuse_pair(one, two);
  return std::max(a, b);
}

float combined(float a, float b, const std::string& method) {
  if (method == "add") return a + b;
  if (method == "subtract") return a - b;
  if (method == "multiply") return a * b;
  return (a + b) / 2;
}

}  // namespace

Sound copied(Context& ctx, const Sound& sound) {
  Sound copy = new_sound(ctx, sound.batch(), sound.channels(), sound.samples(), sound.sample_rate);
  const HostFloats from(ctx, sound.waveform);
  std::copy_n(from.data(), from.size(), copy.waveform.data<float>());
  return copy;
}

Sound stereo(Context& ctx, const Sound& sound) {
  if (sound.channels() != 1) return sound;
  return as_channels(ctx, sound, sound);
}

Sound resampled(Context& ctx, const Sound& sound, std::int64_t rate) {
  if (rate == sound.sample_rate) return sound;
  const SoundResampler resampler(sound.sample_rate, rate);
  const std::int64_t count = resampler.count(sound.samples());
  Sound result = new_sound(ctx, sound.batch(), sound.channels(), count, rate);
  const HostFloats from(ctx, sound.waveform);
  const auto run = static_cast<std::size_t>(sound.samples());
  for (std::int64_t i = 0; i < sound.batch() * sound.channels(); ++i)
    resampler.run(from.elements().subspan(static_cast<std::size_t>(i) * run, run),
                  samples_of(result).subspan(static_cast<std::size_t>(i * count),
                                             static_cast<std::size_t>(count)),
                  [&] {
                    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
                  });
  return result;
}

void match_rates(Context& ctx, Sound& one, Sound& two) {
  const std::int64_t rate = std::max(one.sample_rate, two.sample_rate);
  one = resampled(ctx, one, rate);
  two = resampled(ctx, two, rate);
}

Sound as_channels(Context& ctx, const Sound& one, const Sound& two) {
  if (one.batch() != two.batch()) refuse_pair(one, two);
  const std::int64_t samples = std::min(one.samples(), two.samples());
  Sound both =
      new_sound(ctx, one.batch(), one.channels() + two.channels(), samples, one.sample_rate);
  float* to = both.waveform.data<float>();
  const HostFloats first(ctx, one.waveform), second(ctx, two.waveform);
  for (std::int64_t b = 0; b < one.batch(); ++b) {
    for (std::int64_t c = 0; c < one.channels(); ++c, to += samples)
      std::copy_n(first.data() + (b * one.channels() + c) * one.samples(), samples, to);
    for (std::int64_t c = 0; c < two.channels(); ++c, to += samples)
      std::copy_n(second.data() + (b * two.channels() + c) * two.samples(), samples, to);
  }
  return both;
}

Sound one_after_another(Context& ctx, const Sound& one, const Sound& two) {
  if (one.batch() != two.batch() || one.channels() != two.channels()) refuse_pair(one, two);
  Sound both = new_sound(ctx, one.batch(), one.channels(),
                         checked_sum({one.samples(), two.samples()}, "audio"), one.sample_rate);
  float* to = both.waveform.data<float>();
  const HostFloats first(ctx, one.waveform), second(ctx, two.waveform);
  for (std::int64_t i = 0; i < one.batch() * one.channels(); ++i) {
    to = std::copy_n(first.data() + i * one.samples(), one.samples(), to);
    to = std::copy_n(second.data() + i * two.samples(), two.samples(), to);
  }
  return both;
}

Sound mixed(Context& ctx, const Sound& one, const Sound& two, const std::string& method) {
  const std::int64_t batch = common(one.batch(), two.batch(), one, two);
  const std::int64_t channels = common(one.channels(), two.channels(), one, two);
  const std::int64_t samples = one.samples(), other = std::min(samples, two.samples());
  Sound both = new_sound(ctx, batch, channels, samples, one.sample_rate);
  const HostFloats first(ctx, one.waveform), second(ctx, two.waveform);
  float* to = both.waveform.data<float>();
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t c = 0; c < channels; ++c, to += samples) {
      const float* const x =
          first.data() + (b % one.batch() * one.channels() + c % one.channels()) * samples;
      const float* const y =
          second.data() + (b % two.batch() * two.channels() + c % two.channels()) * two.samples();
      for (std::int64_t i = 0; i < samples; ++i)
        to[i] = combined(x[i], i < other ? y[i] : 0.0f, method);
    }
  float most = 0;
  for (const float sample : samples_of(both)) most = std::max(most, std::fabs(sample));
  if (most > 1)
    for (float& sample : samples_of(both)) sample /= most;
  return both;
}

}  // namespace heddle::video
