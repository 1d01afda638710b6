// The health of the devices of an environment: what a failure and a probe of one mean for the
// weights and values that it holds, and which devices a plan may use now. Any thread.
#pragma once

#include <map>
#include <string>

#include "engine/resources/environment.h"

namespace heddle::engine {

// A run has failed on these devices (index -> cause): one failure for each. Where there are
// several, most often one of them has taken the others along: those that pass a probe are let off,
// if any does not pass it. Weights and cached values of the blamed devices are dropped, because
// nobody knows what their memory holds now.
void report_failures(Environment& environment, std::map<std::size_t, std::string> causes);

// Probes every degraded device whose time has come. One that passes is used again, with nothing of
// what it held before. Blocks as long as the probes take; devices that another thread is probing
// are still left out.
void probe_degraded(Environment& environment);

// The environment's topology, with the devices that are left out now, and why.
Topology topology_now(const Environment& environment);

}  // namespace heddle::engine
