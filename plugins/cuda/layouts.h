// Layouts of weights on this device. Matrices stay row-major (layout 0). Constants.
#pragma once

#include <cstdint>

namespace heddle::cuda {

// A filter (O, C, R, S) stored as (O, R, S, C): the channels of one tap side by side, as those of a
// pixel are.
constexpr std::uint32_t kChannelsLast = 1;

}  // namespace heddle::cuda
