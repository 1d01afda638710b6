// Models that stay on a device, whoever wants the room: somebody has pinned them. Their weights are
// pinned in the device's store, and admission counts them beside what runs need. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/hash.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// What the model has there and will have stays. `bytes`: of all its weights there. Throws
// out_of_memory, with `name`, where a run under way would lack them, or one that waits could never
// begin; nothing is kept then.
void keep_model(const Hash128& model, std::string_view name, std::uint64_t bytes,
                std::uint32_t device, Environment& environment);
// It may go again; nothing goes now.
void release_model(const Hash128& model, std::uint32_t device, Environment& environment);
// The same of all models there.
void release_models(std::uint32_t device, Environment& environment);

}  // namespace heddle::engine
