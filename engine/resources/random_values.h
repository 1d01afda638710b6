// Numbers of matrices that are measured (measure.h). Pure functions.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::engine {

// As models' numbers are, of variance 1 over `width`: how much power a GEMM takes, and so how
// fast it is, depends on their bits. The same every time (Numerical Recipes' generator of 32 bits).
inline std::vector<float> random_values(std::int64_t count, std::int64_t width) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const float scale = std::sqrt(3.0f / float(width)) / 2147483648.0f;
  std::uint32_t bits = 1;
  for (float& value : values) {
    bits = bits * 1664525u + 1013904223u;
    value = float(std::int32_t(bits)) * scale;
  }
  return values;
}

inline constexpr std::int64_t kWholeBlock = 256;  // of HEDDLE_I8_SCALED

// The same numbers as whole ones behind their scale.
inline std::vector<std::byte> whole_blocks(const std::vector<float>& values, std::int64_t width) {
  const float scale = std::sqrt(3.0f / float(width)) / 127;
  std::vector<std::byte> blocks;
  blocks.reserve(values.size() + values.size() / std::size_t(kWholeBlock) * sizeof scale);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % std::size_t(kWholeBlock) == 0) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(&scale);
      blocks.insert(blocks.end(), bytes, bytes + sizeof scale);
    }
    blocks.push_back(std::byte(std::int8_t(std::lround(values[i] / scale))));
  }
  return blocks;
}

}  // namespace heddle::engine
