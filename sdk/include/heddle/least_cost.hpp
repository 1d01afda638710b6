// heddle/least_cost.hpp - what a node works on beside its smallest tiles (heddle/abi/least_cost.h).
#pragma once

#include "abi/least_cost.h"
#include "infer.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

template <>
inline constexpr const char* service_name<heddle_least_cost_service> = HEDDLE_SERVICE_LEAST_COST;

// Bytes on the node's device, besides the calls of Infer::least_call(). An engine that does not
// know this takes the scratch memory of Infer::cost() instead.
inline void tell_least_scratch(Infer& question, std::uint64_t bytes) {
  if (const auto* service = optional_service<heddle_least_cost_service>())
    service->scratch(question.raw(), bytes);
}

}  // namespace heddle
