// How an environment makes room on its devices when a ledger is short: weights that no run under
// way will use again, then values kept for later runs, then weights of models that are used again.
#pragma once

#include "engine/resources/environment.h"

namespace heddle::engine {

// From now on the ledgers of the environment's devices make room so. Once, when its devices are
// there; the environment stays where it is.
void install_eviction(Environment& environment);

// Of values that the cache alone holds on a device: they go when room is wanted.
std::uint64_t cached_bytes(Environment& environment, std::size_t device);
// The same of host memory that is no device's.
std::uint64_t cached_host_bytes(Environment& environment);

// Evicts everything on a device that nobody uses now: weights, cached values, chunks of its
// pools. Gives the bytes that went back to the device.
std::uint64_t unload(Environment& environment, std::size_t device);

// Everything of a device that nobody works with: what unload() evicts (cached values go to host
// memory where that has room), memory that it has pinned, streams, the driver's context. False:
// something is still in use, or the device failed at it, which is logged; what could go has gone.
// REQUIRES: no run begins to work there meanwhile.
bool give_back(Environment& environment, std::size_t device);

// Evicts models that have not been used for `seconds`, on every device.
void expire(Environment& environment, double now, double seconds);

// Puts into the topology what of each device may be used now: if everything of ours went, as
// drivers said it last. REQUIRES: the topology's devices are these.
void update_available(Topology& topology, const std::vector<RunDevice>& devices);

// The value with what devices hold of it copied to host memory, so that it keeps no memory of
// theirs; as it is where it lies in host memory anyway, or that has no room for it. Waits for the
// devices.
Value brought_to_host(Environment& environment, Value value);

}  // namespace heddle::engine
