// Checks of the ops of heddle/abi/frame_ops.h, as op_catalog.cpp has those of the others. Throw
// what Examined throws. Pure; any thread.
#pragma once

#include "engine/device/examined_call.h"

namespace heddle::engine {

void check_conv3d(const Examined& e);

}  // namespace heddle::engine
