// Checks of the ops of abi/batch_ops.h, as op_check.h has those of the others.
#pragma once

#include "heddle/abi/batch_ops.h"
#include "heddle/device.hpp"

namespace heddle::cpu {

void check_batched_product(const heddle_op_call& call);

}  // namespace heddle::cpu
