// Whole numbers in the place of numbers, by the definition of plugins/blocks/linear_int8.h written
// once more: matrices, and the rows that they are multiplied with. Pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "op_cases.h"

namespace heddle::conformance {

inline constexpr std::int64_t kWholeGroup = 256;

// A matrix of whole numbers with a scale for each row.
struct WholeMatrix {
  std::int64_t rows, columns;
  bool is_rotated;
  std::vector<std::int8_t> numbers;
  std::vector<float> scales;

  WholeMatrix(Random& random, std::int64_t n, std::int64_t k, bool rotated)
      : rows(n), columns(k), is_rotated(rotated) {
    for (std::int64_t i = 0; i < n * k; ++i)
      numbers.push_back(static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127));
    for (std::int64_t i = 0; i < n; ++i)
      scales.push_back(static_cast<float>(1 + random() % 1000) / 1e6f);
  }

  HostTensor blocks() const {
    HostTensor made(is_rotated ? HEDDLE_I8_ROTATED : HEDDLE_I8_SCALED, {rows, columns});
    std::byte* to = made.memory().data() + made.origin();
    for (std::int64_t at = 0; at < rows * columns; at += kWholeGroup) {
      std::memcpy(to, &scales[static_cast<std::size_t>(at / columns)], sizeof(float));
      std::memcpy(to + sizeof(float), &numbers[static_cast<std::size_t>(at)], kWholeGroup);
      to += sizeof(float) + kWholeGroup;
    }
    return made;
  }

  // An element of the rotation without its factor of 1 / 16: negative where an odd number of base-4
  // digits of its row and column add up to 3.
  static int sign(std::int64_t i, std::int64_t j) {
    const auto both = static_cast<unsigned>(i ^ j);
    return std::popcount(both & both >> 1 & 0x55) % 2 == 0 ? 1 : -1;
  }

  // The numbers of row `row` as they are meant.
  std::vector<double> wide(std::int64_t row) const {
    std::vector<double> made(static_cast<std::size_t>(columns));
    const std::int8_t* const from = &numbers[static_cast<std::size_t>(row * columns)];
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t first = c / kWholeGroup * kWholeGroup;
      double sum = from[c];
      if (is_rotated) {
        sum = 0;
        for (std::int64_t k = 0; k < kWholeGroup; ++k)
          sum += sign(k, c - first) * static_cast<double>(from[first + k]);
        sum /= 16;
      }
      made[static_cast<std::size_t>(c)] = sum * scales[static_cast<std::size_t>(row)];
    }
    return made;
  }
};

inline void turn(float& a, float& b, float& c, float& d) {
  const float all = (a + b) + (c + d), old_a = a, old_b = b;
  a = all - 2 * d;
  b = all - 2 * c;
  c = all - 2 * old_b;
  d = all - 2 * old_a;
}

struct WholeRow {
  std::vector<int> numbers;
  float scale = 0;
};

// Row `row` of x as whole numbers.
inline WholeRow whole_row(const HostTensor& x, std::int64_t row, std::int64_t columns,
                          bool is_rotated) {
  std::vector<float> values;
  for (std::int64_t c = 0; c < columns; ++c)
    values.push_back(static_cast<float>(x.get(row * columns + c)));
  for (std::size_t g = 0; is_rotated && g < values.size(); g += kWholeGroup) {
    for (std::size_t step = 1; step < kWholeGroup; step *= 4)
      for (std::size_t i = 0; i < kWholeGroup; ++i)
        if (i / step % 4 == 0)
          turn(values[g + i], values[g + i + step], values[g + i + 2 * step],
               values[g + i + 3 * step]);
    for (std::size_t i = 0; i < kWholeGroup; ++i) values[g + i] /= 16;
  }
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  WholeRow made;
  made.scale = std::max(most / 127, 1e-30f);
  const float by = 1 / made.scale;
  for (const float value : values)
    made.numbers.push_back(
        static_cast<int>(std::clamp(std::nearbyint(value * by), -127.0f, 127.0f)));
  return made;
}

}  // namespace heddle::conformance
