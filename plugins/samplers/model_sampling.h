// What a MODEL's settings say about noise (heddle/diffusion/values.h): how its levels are spaced,
// what number it is told for a level, and what its output means. Pure functions of the settings;
// any thread.
#pragma once

#include <string>
#include <vector>

#include <heddle/diffusion/noise_schedules.h>
#include <heddle/model.hpp>

#include "noise_levels.h"
#include "prediction.h"

namespace heddle::samplers {

// Noise levels by name and numbers: what settings and heddle_noise_levels carry.
struct LevelRecipe {
  // "discrete_flow", "flux"; "discrete" and "distilled", both with "_zero_snr" behind it, too;
  // "continuous_edm", "continuous_v"; "cascade"
  std::string table = "discrete_flow";
  // Of discrete_flow and cascade; mu of flux; the lowest level of the continuous ones; the first
  // beta of the discrete and the distilled ones, where the last is below 1.
  double shift = 1.0;
  // Of discrete_flow; the highest level of the continuous ones; the last beta of the discrete and
  // the distilled ones, or 1: as of Stable Diffusion.
  double multiplier = 1.0;
};

// Throws unsupported at a table nobody knows.
NoiseLevels make_levels(const LevelRecipe& recipe);

struct ModelSampling {
  LevelRecipe recipe;
  NoiseLevels levels;
  Prediction prediction = Prediction::kFlow;
  double noise_scale = 1.0;  // of all noise that a run draws
};

// Throws when the model's settings name no noise table.
ModelSampling model_sampling(const Value& model);

// How samples of this model's latents differ from the autoencoder's: scaled = (raw - shift) *
// scale, with one pair of numbers for all channels or one for each.
struct LatentFormat {
  struct Units {
    double scale = 1.0;
    double shift = 0.0;
  };
  std::int64_t channels = 0;   // 0: the settings do not say
  std::vector<Units> units;    // one, or as many as channels
  bool is_told = false;        // the one is what the settings say, not FLUX.1's
  std::int64_t downscale = 0;  // pixels of a picture along a side of a cell; 0: not told
  bool has_frames = false;     // an axis of time behind the channels
  bool has_sound = false;      // latents are pairs: pictures and their sound

  const Units& of(std::int64_t channel) const {
    return units.size() == 1 ? units.front() : units[std::size_t(channel)];
  }
};
// Throws when the settings tell of another number of channels than there are.
LatentFormat latent_format(const Value& settings);

}  // namespace heddle::samplers
