// What an environment holds of every memory, so that a test sees whether a run leaves anything.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "engine/memory/ledger.h"
#include "engine/resources/environment.h"

namespace heddle::test {

struct MemoryInUse {
  struct Device {
    std::uint64_t used = 0, taken = 0, reserved = 0, pinned = 0;  // bytes
    bool operator==(const Device&) const = default;
  };
  std::vector<Device> devices;  // the host's ledger is the last one
  std::uint64_t host_bytes = 0;
  bool operator==(const MemoryInUse&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const MemoryInUse& held) {
  for (const MemoryInUse::Device& d : held.devices)
    out << "[used " << d.used << ", taken " << d.taken << ", reserved " << d.reserved << ", pinned "
        << d.pinned << "] ";
  return out << "host " << held.host_bytes;
}

// REQUIRES: nothing runs. Free chunks are given back before.
inline MemoryInUse memory_in_use(engine::Environment& environment, std::uint64_t host_bytes) {
  MemoryInUse held;
  const auto book = [](const engine::Ledger& ledger) {
    const engine::LedgerReport report = ledger.report();
    MemoryInUse::Device device{0, report.taken, report.reserved, 0};
    for (const engine::LedgerReport::Line& line : report.held) device.pinned += line.pinned;
    return device;
  };
  for (const engine::RunDevice& device : environment.devices) device.state->trim();
  for (const engine::RunDevice& device : environment.devices) {
    held.devices.push_back(book(device.state->ledger()));
    held.devices.back().used = device.state->memory_use().used;
  }
  if (environment.host_ledger != nullptr) held.devices.push_back(book(*environment.host_ledger));
  held.host_bytes = host_bytes;
  return held;
}

}  // namespace heddle::test
