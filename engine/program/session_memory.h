// Where the pieces of memory of a session lie: what outlives a phase, or leaves its device, has a
// place of its own; the rest shares one arena per device, laid out by lifetime. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/session_plan.h"

namespace heddle::engine {

// When a storage is in use: from the first phase and op to the last one.
struct StorageUse {
  int first_phase = -1, last_phase = -1;
  std::uint32_t first = 0, last = 0;  // ops of the phase, counted from 1; 0 is before the first
  bool crosses = false;               // read or written by another device

  void add(Phase phase, std::uint32_t at);
};

// Sets kind and offset of the storages, and the sizes of the arenas. `lane_bytes`: by device slot,
// by how much its scratch memory may grow so that branches have lanes of their own. REQUIRES: one
// use for each storage.
void lay_out_session(SessionPlan& plan, std::vector<StorageUse> uses,
                     const std::vector<std::uint64_t>& lane_bytes);

}  // namespace heddle::engine
