// What the driver's management library knows of a GPU without a context on it: memory in use by
// everybody, and links. libnvidia-ml.so.1 is opened when first asked for; without it every answer
// is "unknown". Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heddle::cuda::nvml {

struct Memory {
  std::uint64_t total, free;  // bytes
};

// uuid: "GPU-...", as the driver writes it.
std::optional<Memory> memory(const std::string& uuid);

// One direction, at the link's full rate; 0: unknown or no such link.
double pcie_bytes_per_second(const std::string& uuid);
double nvlink_bytes_per_second(const std::string& uuid);

}  // namespace heddle::cuda::nvml
