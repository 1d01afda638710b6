// What the plugin and the process that draws say to each other over a socket: structs as they lie
// in memory (both are of one build), and numbers. One request, then for each picture of the batch
// its textures and one reply. RGBA, f32, the first row at the bottom.
#pragma once

#include <cstdint>

namespace heddle::shader {

inline constexpr std::uint32_t kMostImages = 5, kMostOutputs = 4, kMostFloats = 20, kMostInts = 20,
                               kMostBools = 10, kMostCurves = 4, kCurveLength = 256;

struct Request {
  std::uint32_t source_bytes = 0;  // the fragment shader follows, then the curves
  std::uint32_t width = 0, height = 0, passes = 1, outputs = 1;
  std::uint32_t images = 0, floats = 0, ints = 0, bools = 0, curves = 0;
  std::uint32_t image_width[kMostImages] = {}, image_height[kMostImages] = {};
  float float_values[kMostFloats] = {};
  std::int32_t int_values[kMostInts] = {}, bool_values[kMostBools] = {};
};

// is_drawn: outputs x height x width x 4 numbers follow; otherwise a text of error_bytes, and the
// process ends.
struct Reply {
  std::uint32_t is_drawn = 0, error_bytes = 0;
};

}  // namespace heddle::shader
