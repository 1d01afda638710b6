// Checks of the ops of abi/delta_ops.h, as op_check.h has those of the others.
#pragma once

#include "heddle/abi/delta_ops.h"
#include "heddle/device.hpp"

namespace heddle::cpu {

void check_gated_delta_rule(const heddle_op_call& call);

}  // namespace heddle::cpu
