// The table of cases that every device has to pass: each op with odd sizes, slices, broadcasting,
// absent operands and the combinations of element types that matter. Inputs are fresh random
// numbers from a seed. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "heddle/abi/node.h"
#include "heddle/abi/ops.h"
#include "test_device.h"

namespace heddle::conformance {

std::vector<OpCase> make_op_cases(std::uint64_t seed);

// ---- for the files that make the table ----

using Random = std::mt19937_64;
using Operands = std::vector<std::optional<HostTensor>>;

inline constexpr heddle_dtype kFloats[] = {HEDDLE_F32, HEDDLE_F16, HEDDLE_BF16};

inline std::string label(const char* op, const std::string& what) {
  return std::string(op) + " " + what;
}

// Normal numbers with this deviation in the elements of the view.
HostTensor filled(Random& random, HostTensor tensor, double deviation = 1);

template <class Attrs>
std::vector<std::byte> bytes_of(const Attrs& attrs) {
  std::vector<std::byte> bytes(sizeof attrs);
  std::memcpy(bytes.data(), &attrs, sizeof attrs);
  return bytes;
}

void add_elementwise_cases(Random& random, std::vector<OpCase>& cases);
void add_copy_cases(Random& random, std::vector<OpCase>& cases);
void add_norm_cases(Random& random, std::vector<OpCase>& cases);
void add_table_cases(Random& random, std::vector<OpCase>& cases);
void add_row_cases(Random& random, std::vector<OpCase>& cases);
void add_batch_cases(Random& random, std::vector<OpCase>& cases);
void add_delta_cases(Random& random, std::vector<OpCase>& cases);
void add_rms_norm_cases(Random& random, std::vector<OpCase>& cases);
void add_frame_cases(Random& random, std::vector<OpCase>& cases);
void add_attention_cases(Random& random, std::vector<OpCase>& cases);
void add_linear_cases(Random& random, std::vector<OpCase>& cases);
void add_fp8_cases(Random& random, std::vector<OpCase>& cases);
void add_image_cases(Random& random, std::vector<OpCase>& cases);

}  // namespace heddle::conformance
