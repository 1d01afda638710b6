// What a plugin says of a kind of device, read once: its desc, and the extensions that it has.
#pragma once

#include <string>
#include <string_view>

#include "heddle/abi/device.h"

namespace heddle::engine {

// A pointer for each extension of heddle/abi/device.h; nullptr: devices of the kind have no such
// thing. They live as long as the plugin. Immutable.
struct DeviceExtensions {
  const heddle_device_pinned* pinned = nullptr;
  const heddle_device_native* native = nullptr;
  const heddle_device_capture* capture = nullptr;
  const heddle_device_links* links = nullptr;
  const heddle_device_timing* timing = nullptr;
  const heddle_device_cancel* cancel = nullptr;
  const heddle_device_identity* identity = nullptr;
  const heddle_device_context* context = nullptr;
  const heddle_device_uses* uses = nullptr;
};

// A desc of this engine's size: what was added after the plugin's revision is zero. Any thread.
heddle_device_desc whole_desc(const heddle_device_desc& given);

// REQUIRES: a whole desc. Any thread.
DeviceExtensions extensions_of(const heddle_device_desc& desc);

// What devices of the kind are told of a weight's use: HEDDLE_USE_VECTOR of those that came after
// their plugin. Any thread.
heddle_use told_use(const DeviceExtensions& extensions, heddle_use use);

// Throws invalid_argument, which names the plugin, the kind and the function, unless the desc and
// its extensions have all that is required. `given` may have any size. Any thread.
void check_device_desc(const heddle_device_desc& given, std::string_view plugin);

}  // namespace heddle::engine
