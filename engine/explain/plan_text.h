// Plans as text, for people and for golden tests: sorted, rounded, the same on every machine. Pure.
#pragma once

#include <string>

#include "engine/base/json.h"
#include "engine/place/plan.h"

namespace heddle::engine {

std::string plan_text(const Graph& graph, const Plan& plan, const Topology& topology);

// {seconds, steps, pending, warnings}; bytes that are not known are left out.
Json plan_json(const Graph& graph, const Plan& plan, const Topology& topology);

// "5.IMAGE"
std::string output_name(const Graph& graph, const Source& source);

// "1.23 s", "45.6 ms", "789 us": three significant digits.
std::string format_seconds(double seconds);

// "64.0 KiB", "unknown size".
std::string step_bytes_text(std::uint64_t bytes);

}  // namespace heddle::engine
