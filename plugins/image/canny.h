// Edges by J. Canny, "A Computational Approach to Edge Detection" (1986), with the filters that
// kornia uses, which ComfyUI calls. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::image {

// Whether each of height x width numbers, row-major, lies on an edge: its slope is above `high`, or
// above `low` and it touches such a place, over others of the kind. REQUIRES: sides of at least 3,
// low <= high.
std::vector<bool> canny_edges(const std::vector<float>& grey, std::int64_t height,
                              std::int64_t width, float low, float high);

}  // namespace heddle::image
