// Noise schedules of single families of models, that look at the size of the picture. Formulas:
// ComfyUI's. Pure functions; any thread. Both have steps + 1 levels that end in 0, and throw
// std::invalid_argument unless 1 <= steps <= 1000000.
#pragma once

#include "noise_schedule.h"

namespace heddle::samplers {

// FLUX.2: evenly spaced times, shifted by a mu that follows the picture's size (`pixels`) and,
// below 4300 tokens of 16 x 16 pixels, the number of steps.
Sigmas flux2_sigmas(int steps, double pixels);

// Ideogram 4: quantiles of a logit-normal distribution around mu + ln(pixels / 512^2) / 2, cut to
// logits from -7.5 to 9.
Sigmas ideogram4_sigmas(int steps, double pixels, double mu, double deviation);

}  // namespace heddle::samplers
