// What abi/ops.h says about each op, as checks and counts: operands, ranks, sizes, attribute
// structs, FLOPs, bytes. An op that is not in the catalogue (a plugin brought it with its kernels)
// is let through unchecked and counts bytes only. Pure.
#pragma once

#include "heddle/abi/device.h"

namespace heddle::engine {

// Throws invalid_argument "linear/1: the weight's inner size 128 is not the input's 256 (operands
// ...)". Looks at shapes, types and attributes, not at data.
void check_op(const heddle_op_call& call);

struct OpCost {
  double flops = 0;  // multiplications and additions; transcendental functions count 1
  double bytes = 0;  // operands read and written once
};
// REQUIRES: check_op passed.
OpCost op_cost(const heddle_op_call& call);

}  // namespace heddle::engine
