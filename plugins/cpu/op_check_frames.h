// Checks of the ops of abi/frame_ops.h, as op_check.h has those of the others.
#pragma once

#include "heddle/abi/frame_ops.h"
#include "heddle/device.hpp"

namespace heddle::cpu {

// Takes packed weights, too; a kernel looks at the layout in fits().
void check_conv3d(const heddle_op_call& call);

}  // namespace heddle::cpu
