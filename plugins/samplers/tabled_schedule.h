// Noise schedules that were found by optimisation and are handed on as tables: Align Your Steps
// (Sabour et al. 2024) and OptimalSteps (Pei et al. 2025). Pure functions; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "noise_schedule.h"

namespace heddle::samplers {

enum class StepTable {
  kAlignSd1,
  kAlignSdxl,
  kAlignSvd,
  kOptimalFlux,
  kOptimalWan,
  kOptimalChroma
};

// The table of a node's `model_type`: "SD1", "SDXL", "SVD"; "FLUX", "Wan", "Chroma".
std::optional<StepTable> find_step_table(std::string_view model_type);

// steps + 1 levels, interpolated linearly in ln sigma over the table if it is of another length.
// For denoise < 1 the last round(steps * denoise) + 1 of them, empty for denoise <= 0. The last is
// 0. Throws std::invalid_argument unless 1 <= steps <= 1000000.
Sigmas tabled_sigmas(StepTable table, int steps, double denoise = 1.0);

}  // namespace heddle::samplers
