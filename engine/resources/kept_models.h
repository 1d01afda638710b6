// Models that stay on a device, whoever wants the room: somebody has pinned them. Their weights are
// pinned in the device's store, and admission counts them beside what runs need. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "engine/base/hash.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

// These weights of the model stay, those that are there and those that come; of several models
// each counts once. `weights`: bytes in the device's pool by key. Throws out_of_memory, with
// `name`, where a run under way would lack them, or one that waits could never begin; what was kept
// of it before stays then.
void keep_model(const Hash128& model, std::string_view name,
                const std::map<Hash128, std::uint64_t>& weights, std::uint32_t device,
                Environment& environment);
// It may go again; nothing goes now.
void release_model(const Hash128& model, std::uint32_t device, Environment& environment);
// The same but for some weights, which were kept of it before and stay on; nothing where it has
// been released meanwhile.
void release_model_but(const std::map<Hash128, std::uint64_t>& rest, const Hash128& model,
                       std::string_view name, std::uint32_t device, Environment& environment);
// All models there may go again.
void release_models(std::uint32_t device, Environment& environment);

}  // namespace heddle::engine
