// Single-precision arithmetic that the noise tables share. Internal to the noise code; pure.
#pragma once

#include <vector>

namespace heddle::samplers {

// `count` values from `first` to `last`, both included, computed from the nearer end so that both
// ends are exact. One value is `first`. REQUIRES: count >= 0.
std::vector<float> linspace(float first, float last, int count);

}  // namespace heddle::samplers
