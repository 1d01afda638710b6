// Opens the devices that a selection asks for, and brings them to work.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/plugin/loader.h"
#include "engine/run/environment.h"

namespace heddle::core {

struct DeviceSelection {
  std::vector<std::string> names;              // "cpu", "cpu:1"; empty: all devices of the best kind
  std::map<std::string, std::string> compute;  // device or kind -> "f32", "bf16", "fp16"
  std::map<std::string, std::uint64_t> budgets;  // device -> bytes its weights may use together
  unsigned threads = 0;                        // of each CPU device; 0: its share of the cores
  bool reference_kernels = false;
  std::map<std::string, std::string> options;  // device kind -> JSON object: what its plugin is opened with, besides the above
  HealthPolicy health;  // of every device
};

// Throws not_found naming the devices there are, invalid_argument for an unknown compute type, an empty list, or options that are
// no JSON object.
std::vector<RunDevice> open_devices(const LoadedPlugins& plugins, const DeviceSelection& selection);

// What the opened devices say of themselves and of the ways between them. `budgets`: as in the selection.
Topology topology_of(const std::vector<RunDevice>& devices, const std::map<std::string, std::uint64_t>& budgets);

}  // namespace heddle::core
