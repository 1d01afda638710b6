// plugins/samplers/gits_schedule.h - the noise schedules of GITS (Chen et al. 2024, "On the
// Trajectory Regularity of ODE-based Diffusion Sampling"), as ComfyUI's node has them. A pure
// function; any thread.
#pragma once

#include "noise_schedule.h"

namespace heddle::samplers {

// steps + 1 levels of the table for this coefficient; of more than 20 steps the table of 20,
// interpolated linearly in ln sigma. For denoise < 1 the last round(steps * denoise) + 1 of them,
// empty for denoise <= 0. The last is 0. Throws std::invalid_argument unless the coefficient is
// 0.80, 0.85, ... or 1.50 to two decimals and 2 <= steps <= 1000000.
Sigmas gits_sigmas(double coefficient, int steps, double denoise = 1.0);

}  // namespace heddle::samplers
