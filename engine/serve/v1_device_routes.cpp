// Devices and the server itself: /v1/devices, /v1/health and /v1/openapi.json.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/serve/authorization.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"
#include "engine/serve/v1_job.h"
#include "heddle/models.hpp"

namespace heddle::engine {
namespace {

// `resident`: of all devices.
Json told_models(const std::string& device, const std::vector<ResidentModel>& resident) {
  Json list = Json::array();
  for (const ResidentModel& each : resident) {
    if (each.device != device) continue;
    Json model = Json::object();
    model.set("name", each.name).set("bytes", each.bytes).set("bytes_in_use", each.bytes_in_use);
    model.set("pinned", each.is_pinned).set("bytes_pinned", each.bytes_pinned);
    list.push(std::move(model));
  }
  return list;
}

Json told_memory(const MemoryReport& memory) {
  Json told = Json::object(), held = Json::array();
  for (const MemoryUsage& part : memory.held) {
    Json one = Json::object();
    one.set("kind", part.kind).set("owner", text_or_null(part.owner)).set("bytes", part.bytes);
    held.push(std::move(one.set("bytes_in_use", part.pinned)));
  }
  told.set("budget", memory.budget == 0 ? Json() : Json(memory.budget));
  told.set("taken", memory.taken).set("reserved", memory.reserved);
  told.set("available", memory.available).set("peak", memory.peak);
  return std::move(told.set("held", std::move(held)));
}

bool is_working(const DeviceInfo& device) {
  return device.trouble.empty() && device.service == "enabled" && device.state != "degraded";
}

Json told_device(const DeviceInfo& device, const JobTeller& teller, const Call& call,
                 const ServiceParts& parts) {
  Json told = Json::object(), memory = told_memory(device.memory);
  memory.set("total", device.memory_total).set("free", device.memory_free);
  memory.set("ours", device.memory_ours).set("others", device.memory_others);
  told.set("id", device.id).set("name", device.name).set("kind", device.kind);
  told.set("state", device.state).set("service", device.service);
  told.set("trouble", text_or_null(device.trouble));
  told.set("failures", device.failures).set("last_failure", text_or_null(device.last_failure));
  told.set("memory", std::move(memory))
      .set("models", told_models(device.id, Models(parts.engine).resident()));
  return std::move(told.set(
      "jobs", json_list(visible_ids(call.request.caller, teller.jobs_on(device.id), parts.queue))));
}

HttpResponse list_devices(const Call& call, const ServiceParts& parts) {
  const JobTeller teller(parts);
  Json list = Json::array(), host = Json::object(), answer = Json::object();
  for (const DeviceInfo& device : parts.engine.devices())
    list.push(told_device(device, teller, call, parts));
  host.set("memory", told_memory(parts.engine.host_memory()));
  return json_response(answer.set("devices", std::move(list)).set("host", std::move(host)));
}

DeviceInfo require_device(const heddle::Engine& engine, const std::string& id) {
  const std::vector<DeviceInfo> devices = engine.devices();
  const auto found = std::ranges::find(devices, id, &DeviceInfo::id);
  if (found != devices.end()) return *found;
  std::vector<std::string> ids;
  for (const DeviceInfo& device : devices) ids.push_back(device.id);
  refuse_v1(404, "not_found",
            cat("there is no device ", quote(id), ". The devices are ", join(ids, ", "), "."));
}

HttpResponse serve_device(const Call& call, const ServiceParts& parts, std::string_view how) {
  const Fields none(call, {});
  const std::string& id = call.part("id");
  require_device(parts.engine, id);
  if (how == "enable")
    parts.engine.enable(id);
  else if (how == "disable")
    parts.engine.disable(id);
  else
    parts.engine.drain(id, std::chrono::milliseconds(0));
  const DeviceInfo device = require_device(parts.engine, id);
  parts.events.publish("device", {},
                       Json(Json::object().set("device", id).set("service", device.service)));
  return json_response(told_device(device, JobTeller(parts), call, parts));
}

HttpResponse tell_ready(const ServiceParts& parts) {
  const std::vector<DeviceInfo> devices = parts.engine.devices();
  const auto working = std::ranges::count_if(devices, is_working);
  parts.queue.counts();  // throws where its file cannot be read
  if (working == 0)
    refuse_v1(503, "not_ready",
              "no device takes work: each is disabled or in trouble. GET /v1/devices tells more");
  Json answer = Json::object();
  return json_response(answer.set("status", "ready").set("devices", std::int64_t(working)));
}

}  // namespace

void add_v1_device_routes(Router& router, const ServiceParts& parts) {
  add_v1(router, "GET", "/v1/devices",
         [parts](const Call& call) { return list_devices(call, parts); });
  add_v1(router, "GET", "/v1/devices/{id}", [parts](const Call& call) {
    return json_response(
        told_device(require_device(parts.engine, call.part("id")), JobTeller(parts), call, parts));
  });
  for (const char* how : {"enable", "disable", "drain"})
    add_v1(router, "POST", cat("/v1/devices/{id}/", how),
           [parts, how](const Call& call) { return serve_device(call, parts, how); });
  add_v1(router, "GET", "/v1/health/live",
         [](const Call&) { return json_response(Json(Json::object().set("status", "live"))); });
  add_v1(router, "GET", "/v1/openapi.json",
         [](const Call&) { return json_response(std::string(v1_openapi())); });
  add_v1(router, "GET", "/v1/health/ready", [parts](const Call&) { return tell_ready(parts); });
}

}  // namespace heddle::engine
