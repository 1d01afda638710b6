// Who a device is, as its plugin tells before it is opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/device_desc.h"
#include "engine/device/device_names.h"

namespace heddle::engine {

struct DeviceIdentity {
  DeviceNames names;
  std::string architecture = {};            // "compute capability 9.0"; empty: nothing is told
  bool integrated = false;                  // its memory is host memory
  std::vector<std::string> fallbacks = {};  // what it lacks and what is done instead, for people
};

// A device that a plugin tells nothing of has its name and kind. Any thread.
DeviceIdentity identify(const heddle_device_desc& desc, std::uint32_t index,
                        const heddle_host* host);

}  // namespace heddle::engine
