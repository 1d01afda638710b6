// What the driver's management library knows of a GPU without a context on it: memory in use by
// everybody, and links. libnvidia-ml.so.1 is opened when first asked for; without it every answer
// is "unknown". Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "card.h"

namespace heddle::cuda::nvml {

// The cards that CUDA shows to this process, in the order of its ordinals; empty where that is not
// certain, as with cards of several models (CUDA puts the fastest first), cards that are divided
// (MIG), or a CUDA_VISIBLE_DEVICES that is more than a list of numbers and UUIDs: `why` says so.
std::vector<Card> cards(std::string& why);

// Nothing: unknown.
std::optional<PeerWay> peer_way(const std::string& from, const std::string& to);

struct Memory {
  std::uint64_t total, free;  // bytes; without what the driver keeps for itself
};

// uuid: "GPU-...", as the driver writes it.
std::optional<Memory> memory(const std::string& uuid);

// One direction, at the link's full rate; 0: unknown or no such link.
double pcie_bytes_per_second(const std::string& uuid);
double nvlink_bytes_per_second(const std::string& uuid);

}  // namespace heddle::cuda::nvml
