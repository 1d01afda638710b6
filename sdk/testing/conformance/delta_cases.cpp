// Cases of the ops of abi/delta_ops.h: one token and many, with a state before and without, queries
// that several heads share, odd sizes, and operands that are slices of larger tensors.
#include <heddle/abi/delta_ops.h>

#include <cmath>

#include "heddle/device.hpp"
#include "op_cases.h"

namespace heddle::conformance {

namespace {

struct DeltaSizes {
  std::int64_t items, tokens, pairs, heads, depth, width;
  bool continues;  // has a state before
};

OpCase delta_case(Random& random, heddle_dtype type, const DeltaSizes& s, std::int64_t gap) {
  const auto tensor = [&](heddle_dtype of, std::vector<std::int64_t> shape) {
    return filled(random, gap > 0 ? HostTensor::slice(of, std::move(shape), gap)
                                  : HostTensor(of, std::move(shape)));
  };
  OpCase made{
      .name = label(HEDDLE_OP_GATED_DELTA_RULE,
                    device::cat(device::dtype_name(type), " ", s.tokens, " tokens of ", s.heads,
                                " heads ", s.depth, "x", s.width, s.continues ? ", continued" : "",
                                gap > 0 ? ", slices" : "")),
      .op = HEDDLE_OP_GATED_DELTA_RULE,
      .in = {tensor(type, {s.items, s.tokens, 2 * s.pairs, s.depth}),
             tensor(type, {s.items, s.tokens, s.heads, s.width}),
             tensor(type, {s.items, s.tokens, 2 * s.heads}),
             filled(random, HostTensor(type, {s.heads})),
             filled(random, HostTensor(type, {s.heads}))},
      .out = {HostTensor(type, {s.items, s.tokens, s.heads, s.width}),
              HostTensor(HEDDLE_F32, {s.items, s.heads, s.depth, s.width})},
      .attrs = bytes_of(heddle_gated_delta_rule_attrs{1e-6, 1 / std::sqrt(double(s.depth))})};
  if (s.continues)
    made.in.push_back(filled(random, HostTensor(HEDDLE_F32, {s.items, s.heads, s.depth, s.width})));
  return made;
}

}  // namespace

void add_delta_cases(Random& random, std::vector<OpCase>& cases) {
  for (heddle_dtype type : kFloats)
    for (const DeltaSizes& s :
         {DeltaSizes{2, 37, 2, 4, 24, 20, false}, DeltaSizes{1, 1, 2, 2, 128, 128, true},
          DeltaSizes{1, 70, 1, 3, 33, 37, true}})
      cases.push_back(delta_case(random, type, s, 0));
  cases.push_back(delta_case(random, HEDDLE_F32, {2, 9, 1, 2, 16, 8, true}, 5));
  cases.push_back(delta_case(random, HEDDLE_F32, {1, 3, 1, 1, 256, 1, false}, 0));
}

}  // namespace heddle::conformance
