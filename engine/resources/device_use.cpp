#include "engine/resources/device_use.h"

#include <map>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/resources/device_recovery.h"

namespace heddle::engine {

namespace {

// Whose failure it is that a device told: that of another one, when the text begins with its name.
std::size_t origin(const Error& fault, std::size_t reported_by, const Environment& environment) {
  const std::string_view text = fault.what();
  for (std::size_t d = 0; d < environment.devices.size(); ++d)
    if (text.starts_with(cat(environment.devices[d].state->device().name(), ":"))) return d;
  return reported_by;
}

}  // namespace

DeviceUse::DeviceUse(Environment& environment)
    : environment_(environment), uses_(environment.devices.size()) {
  for (std::size_t d = 0; d < uses_.size(); ++d) failed_before_.push_back(device(d).failed_waits());
}

DeviceUse::~DeviceUse() {
  for (std::uint32_t d = 0; d < uses_.size(); ++d)
    if (uses_[d].is_held) environment_.device_service.release(d);
}

void DeviceUse::touch_holders(const Value& value) {
  const heddle_kind kind = value ? kind_of(*value) : HEDDLE_KIND_NONE;
  if (kind != HEDDLE_KIND_TENSOR && kind != HEDDLE_KIND_LIST && kind != HEDDLE_KIND_RECORD) return;
  for_each_tensor(*value, [&](const Tensor& tensor) {
    const auto* memory = dynamic_cast<const DeviceMemory*>(tensor->storage.get());
    if (memory == nullptr) return;
    for (std::uint32_t d = 0; d < uses_.size(); ++d)
      if (environment_.devices[d].state.get() == &memory->state()) touch(d);
  });
}

void DeviceUse::mark(const DeviceState& device, const Node& node) {
  for (std::uint32_t d = 0; d < uses_.size(); ++d)
    if (environment_.devices[d].state.get() == &device) mark(d, node);
}

// Two threads may come here for one device: the first figure stands, because what has failed since
// may be work of this run.
void DeviceUse::begin(std::uint32_t d) {
  hold(d);
  std::uint64_t none = kNotUsed;
  uses_[d].failed_waits.compare_exchange_strong(none, device(d).failed_waits());
}

bool DeviceUse::has_lost_work(std::size_t d) const {
  return device(d).failed_waits() != uses_[d].failed_waits.load(std::memory_order_relaxed);
}

std::string DeviceUse::where(std::size_t d) const {
  const Use& use = uses_[d];
  if (use.last.load(std::memory_order_relaxed) == nullptr)
    return cat("what the run reads or copies on ", device(d).name());
  const std::string node = name_of(*use.last.load(std::memory_order_relaxed));
  if (!use.several.load(std::memory_order_relaxed)) return node;
  return cat("work on ", device(d).name(), ", the last of which is of ", node);
}

void DeviceUse::wait() const {
  for (std::uint32_t d = 0; d < uses_.size(); ++d) {
    if (!has(d)) continue;
    try {
      environment_.devices[d].state->synchronize();
      if (has_lost_work(d))
        throw Error(Code::io, cat(device(d).name(), ": the device failed while this run used it: ",
                                  device(d).last_failure()));
    } catch (Error& error) {
      error.at(where(d));
      throw;
    }
  }
}

void DeviceUse::succeeded() const {
  for (std::uint32_t d = 0; d < uses_.size(); ++d) {
    if (!has(d)) continue;
    device(d).take_fault();  // of somebody else, who hears of it again if it lasts
    environment_.devices[d].health->run_succeeded();
  }
}

std::vector<bool> DeviceUse::failed() const {
  std::vector<bool> is_lost(uses_.size());
  std::map<std::size_t, std::string> blamed;
  for (std::uint32_t d = 0; d < uses_.size(); ++d) {
    if (!has(d)) continue;
    is_lost[d] = has_lost_work(d);
    if (const auto fault = device(d).take_fault()) {
      is_lost[d] = true;
      blamed.try_emplace(origin(*fault, d, environment_), fault->what());
    }
  }
  for (const auto& [d, cause] : blamed) is_lost[d] = true;
  report_failures(environment_, std::move(blamed));
  return is_lost;
}

}  // namespace heddle::engine
