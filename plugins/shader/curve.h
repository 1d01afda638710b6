// CURVE values: points that a curve goes through. Pure; any thread.
#pragma once

#include <heddle/node.hpp>
#include <vector>

namespace heddle::shader {

// Its values at i / (count - 1). A record {"points": [[x, y], ...], "interpolation": "linear" or
// "monotone_cubic"}: straight lines, or Fritsch and Carlson's monotone cubic (SIAM J. Numer. Anal.
// 17, 1980); constant outside of the points. Throws HEDDLE_INVALID_ARGUMENT for what is none.
std::vector<float> curve_table(const Value& curve, std::size_t count);

}  // namespace heddle::shader
