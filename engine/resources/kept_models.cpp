#include "engine/resources/kept_models.h"

#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

// That of a device that computes in host memory counts there, too.
std::vector<std::uint32_t> memories_of(std::uint32_t device, const Environment& environment) {
  std::vector<std::uint32_t> memories{device};
  if (environment.devices[device].state->ledger().parent() != nullptr)
    memories.push_back(std::uint32_t(environment.devices.size()));
  return memories;
}

}  // namespace

void keep_model(const Hash128& model, std::string_view name,
                const std::map<Hash128, std::uint64_t>& weights, std::uint32_t device,
                Environment& environment) {
  const RunDevice& on = environment.devices[device];
  std::uint64_t bytes = 0;
  for (const auto& [key, of_weight] : weights) bytes += of_weight;
  const MutexLock both(environment.keeping);
  if (const auto lack = environment.admission.keep(model, {std::string(name), weights},
                                                   memories_of(device, environment)))
    throw Error(Code::out_of_memory,
                cat(name, " does not stay on ", on.state->device().name(), ": it takes ",
                    format_bytes(bytes), ", and of the ", format_bytes(lack->capacity), " of ",
                    lack->memory == device ? on.state->device().name() : "host memory",
                    " the jobs that run or wait, and what is pinned there, need more than it "
                    "leaves. Let another model go, or try again when they have ended"));
  on.weights->keep(model, weights);
}

void release_model(const Hash128& model, std::uint32_t device, Environment& environment) {
  const MutexLock both(environment.keeping);
  environment.devices[device].weights->release(model);
  environment.admission.forget(model, memories_of(device, environment));
}

void release_model_but(const std::map<Hash128, std::uint64_t>& rest, const Hash128& model,
                       std::string_view name, std::uint32_t device, Environment& environment) {
  const MutexLock both(environment.keeping);
  WeightStore& weights = *environment.devices[device].weights;
  if (weights.kept_of(model).empty()) return;
  weights.keep(model, rest);
  environment.admission.forget_but({std::string(name), rest}, model,
                                   memories_of(device, environment));
}

void release_models(std::uint32_t device, Environment& environment) {
  const MutexLock both(environment.keeping);
  for (const Hash128& model : environment.devices[device].weights->release_kept())
    environment.admission.forget(model, memories_of(device, environment));
}

}  // namespace heddle::engine
