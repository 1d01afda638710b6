// WeightParts: the parts of a weight as one matrix of rows along axis 0, read in any type as f32 or
// copied as it is. Borrows the parts' memory. Reading is thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/abi/device.h"

namespace heddle::cpu {

class WeightParts {
 public:
  // Throws device::Error when the parts do not make up `whole`.
  WeightParts(const heddle_tensor_info& whole, std::uint32_t count,
              const heddle_view* const* parts);

  // Elements [begin, begin + count) of row `row`, the row being everything after axis 0 in
  // row-major order, times the part's scale, written as `dtype`, rounded once. As an f8 type:
  // without the scale, which is kept apart. REQUIRES: both lie inside; whole blocks where `dtype`
  // has them.
  void read(std::int64_t row, std::int64_t begin, std::int64_t count, heddle_dtype dtype,
            void* to) const;
  float scale(std::int64_t row) const;

 private:
  const heddle_view& part_of(std::int64_t& row) const;
  void read_run(const heddle_view& part, std::int64_t offset, std::int64_t step, std::int64_t count,
                heddle_dtype dtype, void* to) const;

  std::vector<heddle_view> parts_;
};

}  // namespace heddle::cpu
