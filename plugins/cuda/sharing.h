// heddle.device.sharing/0: memory of a card for several processes.
#pragma once

#include "heddle/abi/device_sharing.h"

namespace heddle::cuda {

const heddle_device_sharing* sharing_table();

}  // namespace heddle::cuda
