// heddle.device.identity/0, heddle.device.context/0 and heddle.device.ahead/0: who a card is, which
// is told without a context, whether it has one, and that it will need one soon.
#pragma once

#include "heddle/abi/device_ahead.h"

namespace heddle::cuda {

const heddle_device_identity* identity_table();
const heddle_device_context* context_table();
const heddle_device_ahead* ahead_table();

}  // namespace heddle::cuda
