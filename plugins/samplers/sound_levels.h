// The noise levels of a video's sound, of models that draw both over one clock but by shifts of
// their own (settings noise_shift and sound_shift, MiniMax H3): level s u / (1 + (s - 1) u) of the
// same u. Samplers go by the video's levels, so the model is told the sound's level, and by how
// much it changes where the video's changes by 1: its velocity times that is one along the video's
// levels. Any thread.
#pragma once

#include <span>

#include <heddle/model.hpp>

namespace heddle::samplers {

// Inputs of such a model, of each evaluation.
inline constexpr const char* kSoundTimestep = "sound_timestep";
inline constexpr const char* kSoundSlope = "sound_slope";

struct SoundLevels {
  double video_shift = 1, sound_shift = 1;  // above 0

  // level: of the video, in [0, 1].
  double at(double level) const {
    const double u = clock(level);
    return sound_shift * u / (1 + (sound_shift - 1) * u);
  }
  double slope(double level) const {
    const double u = clock(level), video = 1 + (video_shift - 1) * u,
                 sound = 1 + (sound_shift - 1) * u;
    return sound_shift / (sound * sound) / (video_shift / (video * video));
  }

 private:
  double clock(double level) const { return level / (video_shift + (1 - video_shift) * level); }
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
  const Tensor at = ctx.make_host(shape, HEDDLE_F32), slopes = ctx.make_host(shape, HEDDLE_F32);
  for (std::size_t k = 0; k < levels.size(); ++k) {
    at.data<float>()[k] = float(sound.at(levels[k]));
    slopes.data<float>()[k] = float(sound.slope(levels[k]));
  }
  schedule.set(kSoundTimestep, value_of(at)).set(kSoundSlope, value_of(slopes));
}

}  // namespace heddle::samplers
