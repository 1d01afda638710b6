#include "engine/resources/device_recovery.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/memory/probe.h"
#include "engine/resources/available_memory.h"
#include "engine/resources/kept_models.h"

namespace heddle::engine {

namespace {

bool is_on(const Value& value, const DeviceState& device) {
  if (!value) return false;
  const heddle_kind kind = kind_of(*value);
  if (kind != HEDDLE_KIND_TENSOR && kind != HEDDLE_KIND_LIST && kind != HEDDLE_KIND_RECORD)
    return false;
  bool found = false;
  for_each_tensor(*value, [&](const Tensor& tensor) {
    const auto* memory = dynamic_cast<const DeviceMemory*>(tensor->storage.get());
    found = found || (memory != nullptr && &memory->state() == &device);
  });
  return found;
}

void evict_contents(Environment& environment, const RunDevice& device) {
  release_models(std::uint32_t(&device - environment.devices.data()), environment);
  device.weights->drop_all();
  environment.cache.drop_if([&](const Hash128&, std::span<const Value> outputs) {
    return std::ranges::any_of(outputs, [&](const Value& v) { return is_on(v, *device.state); });
  });
}

// What a probe fails with; "" when the device is well.
std::string probe_failure(const Device& device) {
  std::string failure;
  try {
    probe(device);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) failure = error.what();  // full is not broken
  } catch (const std::exception& error) {  // whatever it is: somebody waits for the outcome
    failure = error.what();
  }
  device.take_fault();  // it is no run's
  return failure;
}

}  // namespace

void report_failures(Environment& environment, std::map<std::size_t, std::string> causes) {
  if (causes.size() > 1) {
    std::map<std::size_t, std::string> broken;
    for (const auto& [d, cause] : causes)
      if (!probe_failure(environment.devices[d].state->device()).empty()) broken[d] = cause;
    if (!broken.empty()) causes = std::move(broken);
  }
  for (const auto& [d, cause] : causes) {
    const RunDevice& device = environment.devices[d];
    evict_contents(environment, device);
    if (device.health->run_failed(cause))
      log(Level::warning, cat("device ", device.state->device().name(),
                              " is left out: ", reason_to_leave_out(device.health->report())));
  }
}

void probe_degraded(Environment& environment) {
  for (std::size_t d = 0; d < environment.devices.size(); ++d) {
    const RunDevice& device = environment.devices[d];
    if (environment.device_service.state(std::uint32_t(d)) != DeviceService::State::enabled)
      continue;
    if (!device.health->begin_probe()) continue;
    const std::string& name = device.state->device().name();
    device.state->settle();
    evict_contents(environment, device);
    const std::string failure = probe_failure(device.state->device());
    device.health->end_probe(failure);
    if (failure.empty())
      log(Level::info, cat("device ", name, " is used again: it has passed its probe"));
    else
      log(Level::warning,
          cat("device ", name, " is left out: ", reason_to_leave_out(device.health->report())));
  }
}

Topology topology_now(const Environment& environment) {
  Topology topology = environment.topology;
  const std::size_t count = std::min(topology.devices.size(), environment.devices.size());
  update_available(topology, environment.devices);
  for (std::size_t d = 0; d < count; ++d) {
    topology.devices[d].left_out = reason_to_leave_out(environment.devices[d].health->report());
    const auto service = environment.device_service.state(std::uint32_t(d));
    if (service != DeviceService::State::enabled)
      topology.devices[d].left_out = reason_to_leave_out(service);
  }
  return topology;
}

}  // namespace heddle::engine
