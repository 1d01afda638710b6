// Checks of the ops of abi/row_ops.h, as op_check.h has those of the others.
#pragma once

#include "heddle/abi/row_ops.h"
#include "heddle/device.hpp"

namespace heddle::cpu {

void check_match_rows(const heddle_op_call& call);
void check_merge_rows(const heddle_op_call& call);

}  // namespace heddle::cpu
