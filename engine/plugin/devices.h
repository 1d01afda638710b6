// Opens the devices that a selection asks for, and brings them to work.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/memory/memory_policy.h"
#include "engine/plugin/loader.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

struct DeviceSelection {
  // What engine/device/device_names.h takes, but "auto", as an empty list, is all devices of the
  // best kind: a GPU of its own, else one that is part of the processor, else the processor.
  std::vector<std::string> names;
  std::map<std::string, std::string> compute;  // device or kind -> "f32", "bf16", "fp16"
  unsigned threads = 0;                        // of each CPU device; 0: its share of the cores
  bool reference_kernels = false;
  std::string attention_dtype = {};  // "fp8_e4m3fn"; empty, "default": every device's own
  std::string linear_dtype = {};     // "int8"; empty, "default": every device's own
  std::map<std::string, std::string>
      options;  // device kind -> JSON object: what its plugin is opened with, besides the above
  HealthPolicy health;  // of every device
  MemoryPolicy memory;
};

// Throws not_found naming the devices there are, invalid_argument for an unknown compute type, an
// empty list, or options that are no JSON object.
std::vector<RunDevice> open_devices(const LoadedPlugins& plugins, const DeviceSelection& selection);

// What the opened devices say of themselves, of what may be used of them, and of the ways between
// them.
Topology topology_of(const std::vector<RunDevice>& devices);

}  // namespace heddle::engine
