// The noise levels of a video's sound, of models that draw both over one clock but by shifts of
// their own (settings noise_shift v and sound_shift a, MiniMax H3): level s u / (1 + (s - 1) u) of
// the same u. Samplers know the video's levels V alone. So they hold, for noise n and sound z, the
// point V n + (1 - V) k z with k = v / a; times carry = A / V, A the sound's level, that is the
// sound at its own level, A n + (1 - A) z. A model that finds the velocity n - z there gives
// n - k z, which is (1 - k) times the sound plus (1 + (k - 1) A) times the velocity. Any sampler
// then draws the sound as it draws the video, and Euler's steps are those by the sound's own
// levels. ComfyUI's ModelSamplingAV does the same. Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include <heddle/model.hpp>

namespace heddle::samplers {

// Inputs of such a model, of each evaluation: A, carry, and the parts of what the sampler holds and
// of the velocity in what it gives.
inline constexpr const char* kSoundTimestep = "sound_timestep";
inline constexpr const char* kSoundCarry = "sound_carry";
inline constexpr const char* kSoundKept = "sound_kept";
inline constexpr const char* kSoundGain = "sound_gain";
inline constexpr std::array kSoundInputs{kSoundTimestep, kSoundCarry, kSoundKept, kSoundGain};

struct SoundLevels {
  double video_shift = 1, sound_shift = 1;  // above 0

  // level: of the video, taken as in [0, 1].
  double at(double level) const {
    const double u = clock(level);
    return sound_shift * u / (1 + (sound_shift - 1) * u);
  }
  double scale() const { return video_shift / sound_shift; }
  double carry(double level) const {
    const double u = clock(level);
    return (1 + (video_shift - 1) * u) / (1 + (sound_shift - 1) * u) / scale();
  }
  double kept(double level) const { return (1 - scale()) * carry(level); }
  double gain(double level) const { return 1 + (scale() - 1) * at(level); }

 private:
  double clock(double level) const {
    level = std::clamp(level, 0.0, 1.0);
    return level / (video_shift + (1 - video_shift) * level);
  }
};

// What such a model is told of evaluations at these levels of the video, added to its schedule; of
// any other model nothing.
inline void add_sound_levels(Context& ctx, const Value& model, std::span<const double> levels,
                             Record& schedule) {
  if (!model_takes(model, kSoundTimestep)) return;
  const Value settings = model_settings(model);
  const SoundLevels sound{settings.get<double>("noise_shift", 1.0),
                          settings.get<double>("sound_shift", 1.0)};
  const Shape shape{std::int64_t(levels.size())};
  std::array<Tensor, kSoundInputs.size()> told;
  for (Tensor& tensor : told) tensor = ctx.make_host(shape, HEDDLE_F32);
  for (std::size_t k = 0; k < levels.size(); ++k) {
    const double level = levels[k];
    const std::array numbers{sound.at(level), sound.carry(level), sound.kept(level),
                             sound.gain(level)};
    for (std::size_t i = 0; i < told.size(); ++i) told[i].data<float>()[k] = float(numbers[i]);
  }
  for (std::size_t i = 0; i < told.size(); ++i) schedule.set(kSoundInputs[i], value_of(told[i]));
}

}  // namespace heddle::samplers
