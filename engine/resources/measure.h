// What devices and the ways between them can do, measured: through the same ops, weights and copies
// that runs use.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/place/costs.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// Measures one device of each model and one link of each pair of models, and puts the figures into
// `known`, over what it has of them. Products and attention are as large as in a model where the
// device has the time and the room; fp8 and int8 GEMMs are measured where it has such, and how much
// faster GEMMs are when the device rests in between. The way from host memory is measured twice
// where a device can pin it: from memory as it comes, and from at most `pinned_bytes` of pinned
// memory. Times are the device's own where it tells them, else the host's. Seconds for each device;
// allocates up to an eighth of its free memory. REQUIRES: nothing else uses the devices meanwhile.
// Throws what a device fails with.
Costs measure(const std::vector<RunDevice>& devices, Costs known, std::uint64_t pinned_bytes,
              const std::function<void(const std::string&)>& progress);

}  // namespace heddle::engine
