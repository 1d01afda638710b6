// GET /v1/metrics and GET /metrics, for Prometheus.
#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "engine/serve/metrics.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"
#include "heddle/models.hpp"

namespace heddle::engine {
namespace {

// What is taken and nobody holds lies free in pools.
std::map<std::string, std::uint64_t> bytes_by_holder(const MemoryReport& memory) {
  std::map<std::string, std::uint64_t> held;
  std::uint64_t all = 0;
  for (const MemoryUsage& part : memory.held) {
    held[part.kind] += part.bytes;
    all += part.bytes;
  }
  held["pools"] = memory.taken > all ? memory.taken - all : 0;
  return held;
}

void write_jobs(const ServiceParts& parts, Exposition& to) {
  const JobCounts jobs = parts.queue.counts();
  to.family("heddle_jobs", "gauge", "Jobs in the queue, by state.");
  to.sample({{"state", "pending"}}, double(jobs.pending));
  to.sample({{"state", "running"}}, double(jobs.running));
  to.sample({{"state", "paused"}}, double(jobs.paused));
  to.family("heddle_queue_paused", "gauge", "1 where no job begins.");
  to.sample({}, parts.queue.is_paused() ? 1 : 0);
  to.family("heddle_workers", "gauge", "Jobs that run at a time at most.");
  to.sample({}, parts.runner.jobs());
  to.family("heddle_event_readers", "gauge", "Connections that follow events, by their kind.");
  to.sample({{"kind", "websocket"}}, double(parts.clients.count()));
  to.sample({{"kind", "stream"}}, double(parts.events.readers()));
}

// Those that every device has are there from the beginning, as 0: a rate needs a first value.
void write_transfers(const std::vector<DeviceInfo>& devices, const MemoryReport& host,
                     Exposition& to) {
  std::map<std::pair<std::string, std::string>, Transfers> all;
  for (const DeviceInfo& device : devices) {
    all.try_emplace({"host", device.kind});
    all.try_emplace({device.kind, "host"});
  }
  for (const DeviceInfo& device : devices)
    for (const Transfers& each : device.transfers) {
      Transfers& sum = all[{each.from, each.to}];
      sum.copies += each.copies;
      sum.bytes += each.bytes;
    }
  const auto write = [&](std::string_view name, std::string_view help,
                         std::uint64_t Transfers::*what) {
    to.family(name, "counter", help);
    for (const auto& [ends, sum] : all)
      to.sample({{"source", ends.first}, {"target", ends.second}}, double(sum.*what));
  };
  write("heddle_transfers_total", "Copies between memories, by kind of device.",
        &Transfers::copies);
  write("heddle_transferred_bytes_total", "Bytes copied between memories, by kind of device.",
        &Transfers::bytes);
  to.family("heddle_file_read_bytes_total", "counter",
            "Bytes of weights read from files, for the first time or again.");
  to.sample({{"read", "first"}}, double(host.read_first));
  to.sample({{"read", "again"}}, double(host.read_again));
}

void write_evictions(const std::vector<DeviceInfo>& devices, const MemoryReport& host,
                     Exposition& to) {
  const auto write = [&](std::string_view name, std::string_view help,
                         std::uint64_t Eviction::*what) {
    to.family(name, "counter", help);
    const auto add = [&](const std::string& memory, const MemoryReport& report) {
      for (const char* always : {"weights without use", "cached values"})
        if (std::ranges::find(report.evictions, always, &Eviction::what) == report.evictions.end())
          to.sample({{"device", memory}, {"what", always}}, 0);
      for (const Eviction& each : report.evictions)
        to.sample({{"device", memory}, {"what", each.what}}, double(each.*what));
    };
    for (const DeviceInfo& device : devices) add(device.id, device.memory);
    add("host", host);
  };
  write("heddle_evictions_total", "How often something went for want of room, by what it was.",
        &Eviction::times);
  write("heddle_evicted_bytes_total", "Bytes that went for want of room, by what they were.",
        &Eviction::bytes);
}

void write_devices(heddle::Engine& engine, Exposition& to) {
  const std::vector<DeviceInfo> devices = engine.devices();
  to.family("heddle_device_up", "gauge", "1 where a device takes work.");
  for (const DeviceInfo& device : devices)
    to.sample({{"device", device.id}},
              device.trouble.empty() && device.state != "degraded" && device.service == "enabled"
                  ? 1
                  : 0);
  to.family("heddle_device_memory_total_bytes", "gauge", "Memory of a device.");
  for (const DeviceInfo& device : devices)
    to.sample({{"device", device.id}}, double(device.memory_total));
  to.family("heddle_device_memory_bytes", "gauge", "Memory of a device, by who holds it.");
  for (const DeviceInfo& device : devices) {
    for (const auto& [holder, bytes] : bytes_by_holder(device.memory))
      to.sample({{"device", device.id}, {"holder", holder}}, double(bytes));
    to.sample({{"device", device.id}, {"holder", "other programs"}}, double(device.memory_others));
  }
  to.family("heddle_pinned_models", "gauge",
            "Models that stay on a device, whoever wants the room.");
  const std::vector<ResidentModel> models = Models(engine).resident();
  for (const DeviceInfo& device : devices)
    to.sample({{"device", device.id}},
              double(std::ranges::count_if(models, [&](const ResidentModel& model) {
                return model.is_pinned && model.device == device.id;
              })));
  const MemoryReport host = engine.host_memory();
  to.family("heddle_host_memory_bytes", "gauge", "Memory of the host, by what holds it.");
  for (const auto& [holder, bytes] : bytes_by_holder(host))
    to.sample({{"holder", holder}}, double(bytes));
  write_transfers(devices, host, to);
  write_evictions(devices, host, to);
}

HttpResponse metrics(const ServiceParts& parts) {
  Exposition to;
  to.family("heddle_build_info", "gauge", "1, with the version.");
  to.sample({{"version", parts.engine.version()}}, 1);
  write_jobs(parts, to);
  parts.metrics.write(to);
  write_devices(parts.engine, to);
  HttpResponse response{200, {}, to.text()};
  return std::move(response.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8"));
}

}  // namespace

void add_metrics_routes(Router& router, const ServiceParts& parts) {
  for (const char* path : {"/v1/metrics", "/metrics"})
    add_v1(router, "GET", path, [parts](const Call&) { return metrics(parts); });
}

}  // namespace heddle::engine
