// The way of bytes from one device to another. Pure as far as the devices' answers are.
#pragma once

#include "engine/device/device.h"

namespace heddle::engine {

enum class Route {
  same,       // both read host memory: nothing is copied
  direct,     // one copy between the two
  from_host,  // the source lies in host memory: one copy by the destination
  to_host,    // the destination lies in host memory: one copy by the source
  staged      // through a buffer in host memory: two copies
};

// nullptr: host memory.
Route find_route(const Device* from, const Device* to);

}  // namespace heddle::engine
