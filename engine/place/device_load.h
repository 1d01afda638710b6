// What goes on beside a workflow that is placed. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/base/hash.h"

namespace heddle::engine {

// Weights that a run brings to a device before its nodes compute there. Several runs that are
// placed on a device bring them once.
struct PlannedLoad {
  Hash128 model;
  std::uint32_t device = 0;
  std::uint64_t bytes = 0;  // of all that the device is to hold; 0: they pass, and nothing stays
  double seconds = 0;       // for these bytes, or for what passes
};

struct DeviceLoad {
  std::vector<double> busy_seconds;  // by device: work that others gave it; empty: none
  bool among_many = false;  // one of many runs: devices are better used by whole runs than by parts
  // By device: bytes of a model's weights that are there already, or will be once the work above is
  // done; empty: none are anywhere.
  std::vector<std::map<Hash128, std::uint64_t>> resident = {};
};

bool is_beside_others(const DeviceLoad& load);

// A run under way.
struct RunLoad {
  std::vector<double> busy_seconds;  // by device, as planned, without loading
  std::vector<PlannedLoad> loads;
  double share_left = 1;  // of its work
};

// Adds what the runs have still to do; of weights that are not there, as much as is left of the run
// that has most to do: when it needs them nobody knows. REQUIRES: an entry of busy_seconds and of
// resident for each device.
void add_runs(std::span<const RunLoad> runs, DeviceLoad& device_load);

}  // namespace heddle::engine
