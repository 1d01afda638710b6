// What samplers share that remember the slopes dx / dsigma of earlier steps. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "sampler_algebra.h"

namespace heddle::samplers::steps {

// x + factor * sum of weighted slopes: of this step (0), of the one before (1) ...
std::vector<Evaluation> slope_step(const Step& step, double factor,
                                   std::span<const double> weights);

// The polynomial that is 1 at nodes[j] and 0 at the others, at `t`.
double lagrange(std::span<const double> nodes, std::size_t j, double t);

}  // namespace heddle::samplers::steps
