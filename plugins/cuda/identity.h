// heddle.device.identity/0, heddle.device.context/0 and heddle.device.ahead/0: who a card is, which
// is told without a context, whether it has one, and that it will need one soon.
#pragma once

#include <string_view>

#include "heddle/abi/device_ahead.h"

namespace heddle::cuda {

// nullptr: another extension is asked for.
const void* identity_extension(std::string_view name);

}  // namespace heddle::cuda
