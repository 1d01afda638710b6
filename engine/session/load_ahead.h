// Weights of a model on a device before any run asks for them: as the first step of a session would
// load them, whole, into the same store. Thread-safe.
#pragma once

#include <cstdint>
#include <stop_token>

#include "engine/graph/model.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// Loads what is missing; what lies there and nobody uses goes for it, as for a session. `keeps`: it
// stays there (kept_models.h). Gives the bytes of all of its weights there. Throws out_of_memory
// where it does not fit beside what is in use, or where the runs that are under way or wait would
// lack it, before anything goes; cancelled, before its next weight, where `stop` says so, and then
// nothing stays that was not there; io and what else a load throws.
std::uint64_t load_ahead(const Model& model, std::uint32_t device, bool keeps,
                         Environment& environment, const std::stop_token& stop = {});

// Throws cancelled: whoever asked for a load, or waits for one, has ended.
[[noreturn]] void throw_stopped();

}  // namespace heddle::engine
