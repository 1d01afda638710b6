// The ledgers of opened devices, as a policy wants them.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/device.h"
#include "engine/memory/ledger.h"
#include "engine/memory/memory_policy.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// One for each device, in their order. CPU devices have shares of the host's, which is their
// parent: what the policy says, and of the rest by their threads. Throws not_found for a name that
// is none of these devices, nor a kind.
std::vector<std::shared_ptr<Ledger>> make_ledgers(
    const std::vector<std::shared_ptr<const Device>>& devices, const MemoryPolicy& policy);

// That of host memory: the parent of CPU devices, or a new one where there are none.
std::shared_ptr<Ledger> host_ledger_of(const std::vector<RunDevice>& devices,
                                       const MemoryPolicy& policy);

}  // namespace heddle::engine
