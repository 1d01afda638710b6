// Checks of the ops of abi/norm_ops.h, as op_check.h has those of the others.
#pragma once

#include "heddle/abi/norm_ops.h"
#include "heddle/device.hpp"

namespace heddle::cpu {

void check_modulated_rms_norm(const heddle_op_call& call);
void check_norm_rope_half(const heddle_op_call& call);

}  // namespace heddle::cpu
