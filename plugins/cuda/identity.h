// heddle.device.identity/0 and heddle.device.context/0: who a card is, which is told without a
// context, and whether it has one.
#pragma once

#include "heddle/abi/device.h"

namespace heddle::cuda {

const heddle_device_identity* identity_table();
const heddle_device_context* context_table();

}  // namespace heddle::cuda
