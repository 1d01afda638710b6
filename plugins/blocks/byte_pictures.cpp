#include "plugins/blocks/byte_pictures.h"

#include <algorithm>
#include <cmath>

namespace heddle::blocks {
namespace {

// What is no number is black.
float clipped_to_bytes(float value) { return value > 0 ? std::min(value, 255.0f) : 0.0f; }

}  // namespace

void resample_cubic_bytes(float* numbers, const Grids& grids, const GridSize& to, float* out,
                          std::pmr::memory_resource& memory, const BeforeRow& before_row) {
  const std::int64_t given = grids.outer * grids.size.height * grids.size.width * grids.inner,
                     made = grids.outer * to.height * to.width * grids.inner;
  std::transform(numbers, numbers + given, numbers,
                 [](float x) { return std::trunc(clipped_to_bytes(255.0f * x)); });
  if (grids.size == to)
    std::copy_n(numbers, made, out);
  else
    resample(Source::of(numbers, grids), to, Resampling::bicubic_antialiased, out, memory,
             before_row);
  std::transform(out, out + made, out,
                 [](float x) { return std::nearbyint(clipped_to_bytes(x)) * float(1.0 / 255.0); });
}

}  // namespace heddle::blocks
