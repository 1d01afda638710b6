// Cases of the ops of abi/batch_ops.h: odd sizes, and matrices that are slices of larger tensors.
#include <heddle/abi/batch_ops.h>

#include "heddle/device.hpp"
#include "op_cases.h"

namespace heddle::conformance {

void add_batch_cases(Random& random, std::vector<OpCase>& cases) {
  struct Sizes {
    std::int64_t items, rows, inner, width;
  };
  for (heddle_dtype type : kFloats)
    for (const Sizes& s : {Sizes{3, 67, 33, 45}, Sizes{2, 1, 64, 256}, Sizes{1, 256, 1, 1}})
      cases.push_back({.name = label(HEDDLE_OP_BATCHED_PRODUCT,
                                     device::cat(device::dtype_name(type), " ", s.rows, "x",
                                                 s.inner, "x", s.width)),
                       .op = HEDDLE_OP_BATCHED_PRODUCT,
                       .in = {filled(random, HostTensor(type, {s.items, s.rows, s.inner})),
                              filled(random, HostTensor(type, {s.items, s.inner, s.width}))},
                       .out = {HostTensor(type, {s.items, s.rows, s.width})}});
  cases.push_back({.name = label(HEDDLE_OP_BATCHED_PRODUCT, "slices, f32 by bf16"),
                   .op = HEDDLE_OP_BATCHED_PRODUCT,
                   .in = {filled(random, HostTensor::slice(HEDDLE_F32, {3, 20, 33}, 3)),
                          filled(random, HostTensor::slice(HEDDLE_BF16, {3, 33, 24}, 7))},
                   .out = {HostTensor(HEDDLE_F32, {3, 20, 24})}});
}

}  // namespace heddle::conformance
