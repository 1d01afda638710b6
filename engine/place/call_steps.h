// What crosses between devices inside the calls of a plan: each call's session is planned as a run
// would plan it, but for kernels and layouts of weights, and its transfers are added up. For plans
// that somebody looks at; runs do without. Pure as far as blocks are.
#pragma once

#include "engine/place/costs.h"
#include "engine/place/plan.h"
#include "engine/program/infer.h"
#include "engine/program/session_spec.h"

namespace heddle::engine {

// Fills transfers, exchanges and streams of the calls that use several devices, or one that has no
// room for all weights, and whose shapes are known.
// A call whose blocks refuse its shapes is left as it is: the run tells that.
void annotate_calls(const Inferred& inferred, const Prices& prices, Plan& plan);

// A call as the session that a run would plan of it, with weights in plain layouts. `home`: the
// caller's device. Refers to the call and to the prices.
SessionSetup session_setup(const CallSpec& call, const CallPlacement& placement, std::uint32_t home,
                           const Prices& prices);

// What a session may use of a device that nobody else uses; kNoLimit where it is not worth asking.
std::uint64_t session_budget(const DeviceFacts& device);

// A device that takes no part in a call, as a source of its streamed weights: half of what is free
// there, so that somebody else may come. Nothing where it has no direct way to any of the places
// with the same kind of device, or is left out.
std::optional<Donor> session_donor(const Prices& prices, std::uint32_t device,
                                   const std::vector<std::uint32_t>& users,
                                   std::uint64_t free_bytes);
// All of them, as if nobody else used them.
std::vector<Donor> session_donors(const Prices& prices, const std::vector<std::uint32_t>& users);

}  // namespace heddle::engine
