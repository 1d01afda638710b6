// Groups of devices for modes that are combined: cfg and data give each group branches or items of
// its own, and the devices of a group, its ranks, divide the work on them. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/place/costs.h"
#include "engine/program/call_placement.h"

namespace heddle::engine {

struct GroupSizes {
  std::uint32_t set_shares = 1, item_shares = 1, ranks = 1;

  std::uint32_t groups() const { return set_shares * item_shares; }
  std::uint32_t devices() const { return groups() * ranks; }
};

// What a call has to share out.
struct CallShares {
  std::size_t sets = 1;    // there are no more shares of sets
  std::int64_t items = 1;  // nor of items
};

// The groups that are worth a try among so many devices, those of fewer devices first. `all`: only
// such as use every device.
std::vector<GroupSizes> group_sizes(ParallelMode mode, std::size_t devices, bool all,
                                    const CallShares& shares);

// Whether any two of the devices have one memory. Groups whose ranks exchange parts of blocks need
// memories of their own: a rank of one group would write where one of another still reads.
bool share_memory(const std::vector<std::uint32_t>& devices, const Topology& topology);

// Devices of that many groups, group after group, the first one given in front where it can be.
// Groups are alike rank by rank, and the links inside of each are the best that are left. Empty:
// the devices differ too much.
std::vector<std::uint32_t> grouped_devices(const std::vector<std::uint32_t>& devices,
                                           const GroupSizes& sizes, const Prices& prices);

}  // namespace heddle::engine
