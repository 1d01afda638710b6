// Asks a device whether it still does what devices do.
#pragma once

#include "engine/device/device.h"

namespace heddle::engine {

// Takes a little memory past all pools, copies a pattern there and back on a stream of its own,
// waits and compares. Blocks. Throws the device's failure, io when other bytes came back.
void probe(const Device& device);

}  // namespace heddle::engine
