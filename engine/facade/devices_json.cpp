// Devices as JSON, for programs: what `heddle devices --json` prints.
#include "engine/base/json.h"
#include "engine/facade/data.h"

namespace heddle {

namespace {

using engine::Json;

Json memory_json(const MemoryReport& memory) {
  Json held = Json::array();
  for (const MemoryUsage& part : memory.held)
    held.push(std::move(Json::object()
                            .set("kind", part.kind)
                            .set("owner", part.owner)
                            .set("bytes", part.bytes)
                            .set("pinned", part.pinned)
                            .set("could_be_freed", part.bytes - part.pinned)));
  return std::move(Json::object()
                       .set("budget", memory.budget)
                       .set("headroom", memory.headroom)
                       .set("taken", memory.taken)
                       .set("reserved", memory.reserved)
                       .set("available", memory.available)
                       .set("held", std::move(held)));
}

Json device_json(const DeviceInfo& device) {
  Json links = Json::array();
  for (const DeviceLink& link : device.links)
    links.push(std::move(Json::object()
                             .set("to", link.to)
                             .set("kind", link.kind)
                             .set("bytes_per_second", link.bytes_per_second)
                             .set("latency_seconds", link.latency_seconds)));
  Json fallbacks = Json::array();
  for (const std::string& line : device.fallbacks) fallbacks.push(line);
  return std::move(Json::object()
                       .set("id", device.id)
                       .set("name", device.name)
                       .set("kind", device.kind)
                       .set("location", device.location)
                       .set("compute", device.compute)
                       .set("threads", device.threads)
                       .set("memory_total", device.memory_total)
                       .set("memory_free", device.memory_free)
                       .set("memory_ours", device.memory_ours)
                       .set("memory_others", device.memory_others)
                       .set("trouble", device.trouble)
                       .set("state", device.state)
                       .set("failures", device.failures)
                       .set("last_failure", device.last_failure)
                       .set("probe_seconds", device.probe_seconds)
                       .set("service", device.service)
                       .set("has_context", device.has_context)
                       .set("uuid", device.uuid)
                       .set("pci_address", device.pci_address)
                       .set("architecture", device.architecture)
                       .set("integrated", device.integrated)
                       .set("fallbacks", std::move(fallbacks))
                       .set("memory", memory_json(device.memory))
                       .set("links", std::move(links)));
}

}  // namespace

std::string Engine::devices_json() const {
  return translate_errors([&] {
    Json devices = Json::array();
    for (const DeviceInfo& device : this->devices()) devices.push(device_json(device));
    return engine::write_json(devices);
  });
}

}  // namespace heddle
