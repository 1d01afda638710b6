// Devices, as people ask for them: what there is, and which of them are used.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/facade/data.h"
#include "engine/resources/available_memory.h"

namespace heddle {

namespace {

// peer nullptr: host memory.
DeviceLink link_to(const engine::Device& device, const engine::Device* peer) {
  const heddle_link link = device.link(peer);
  const char* const kind = link.kind == HEDDLE_LINK_SAME     ? "same"
                           : link.kind == HEDDLE_LINK_PEER   ? "peer"
                           : link.kind == HEDDLE_LINK_DIRECT ? "direct"
                                                             : "through host";
  return {peer == nullptr ? "host" : peer->name(), kind, link.bytes_per_second,
          link.latency_seconds};
}

// Throws not_found naming the devices there are.
std::vector<std::uint32_t> named_devices(std::string_view selector,
                                         const engine::Environment& environment) {
  std::vector<std::uint32_t> named;
  for (std::uint32_t d = 0; d < environment.devices.size(); ++d)
    if (named_by(selector, environment.devices[d].state->device().names()) !=
        engine::NamedBy::nothing)
      named.push_back(d);
  if (named.empty())
    throw engine::Error(engine::Code::not_found,
                        engine::cat("there is no device ", engine::quote(selector),
                                    "; there are: ", all_device_names(environment.topology)));
  return named;
}

}  // namespace

std::vector<DeviceInfo> Engine::devices() const {
  return translate_errors([&] {
    std::vector<DeviceInfo> all;
    for (std::uint32_t i = 0; i < data_->environment->devices.size(); ++i) {
      const engine::RunDevice& device = data_->environment->devices[i];
      const engine::Device& d = device.state->device();
      const engine::LedgerReport ledger = device.state->ledger().report();
      const std::uint64_t ours = ledger.taken;
      heddle_device_info info = d.opening_info();
      std::string trouble;
      try {
        const heddle_device_info now = d.info();  // by a value of its own: g++ 12 builds an
                                                  // assigned result in place, and leaves half of it
        info = now;
      } catch (const engine::Error& error) {  // one that is dead does not hide the others
        trouble = error.full();
        info.memory_free = 0;
      }
      const std::uint64_t known = info.memory_free + ours,
                          others = trouble.empty()
                                       ? info.memory_total - std::min(known, info.memory_total)
                                       : 0;
      DeviceInfo& one =
          all.emplace_back(DeviceInfo{d.name(),
                                      info.name,
                                      d.kind(),
                                      info.location,
                                      std::string(engine::dtype_name(engine::DType(info.compute))),
                                      info.memory_total,
                                      info.memory_free,
                                      ours,
                                      others,
                                      info.threads,
                                      {},
                                      std::move(trouble),
                                      {},
                                      0,
                                      {},
                                      0,
                                      {},
                                      d.names().uuid,
                                      d.names().pci_address,
                                      d.identity().architecture,
                                      d.identity().fallbacks,
                                      d.identity().integrated,
                                      d.has_context().value_or(true),
                                      {},
                                      {}});
      for (const engine::TransferCount& each : d.transfers())
        one.transfers.push_back({each.from, each.to, each.copies, each.bytes});
      one.memory = report_of(ledger);
      one.service = engine::state_name(data_->environment->device_service.state(i));
      const engine::DeviceHealth::Report health = device.health->report();
      one.state = engine::state_name(health.state);
      one.failures = health.failures;
      one.last_failure = health.cause;
      one.probe_seconds = health.probe_in_seconds;
      if (!one.trouble.empty()) continue;  // nor does anybody reach it
      for (const engine::RunDevice& other : data_->environment->devices)
        if (&other != &device) one.links.push_back(link_to(d, &other.state->device()));
      one.links.push_back(link_to(d, nullptr));
    }
    return all;
  });
}

void Engine::enable(std::string_view device) {
  translate_errors([&] {
    for (const std::uint32_t d : named_devices(device, *data_->environment))
      data_->environment->device_service.enable(d);
  });
}

void Engine::disable(std::string_view device) {
  translate_errors([&] {
    for (const std::uint32_t d : named_devices(device, *data_->environment))
      data_->environment->device_service.disable(d);
  });
}

bool Engine::drain(std::string_view device, std::optional<std::chrono::milliseconds> wait) {
  return translate_errors([&] {
    engine::DeviceService& service = data_->environment->device_service;
    const std::vector<std::uint32_t> devices = named_devices(device, *data_->environment);
    for (const std::uint32_t d : devices) service.drain(d);
    data_->finish_drains();
    service.wait_drained(devices, wait);
    return std::ranges::all_of(devices, [&](std::uint32_t d) {
      return service.state(d) == engine::DeviceService::State::drained;
    });
  });
}

void Engine::Data::finish_drains() noexcept {
  environment->device_service.finish_drains(
      [&](std::uint32_t d) { return engine::give_back(*environment, d); });
}

}  // namespace heddle
