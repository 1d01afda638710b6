// Models on devices: /v1/models.
#include <map>

#include "engine/base/text.h"
#include "engine/serve/service.h"
#include "engine/serve/v1.h"
#include "heddle/models.hpp"

namespace heddle::engine {
namespace {

Json told_place(const ResidentModel& model) {
  Json place = Json::object();
  place.set("device", model.device).set("bytes", model.bytes);
  place.set("bytes_in_use", model.bytes_in_use).set("pinned", model.is_pinned);
  return std::move(place.set("bytes_pinned", model.bytes_pinned));
}

// A model that is on several devices is told once.
HttpResponse list_models(heddle::Engine& engine) {
  std::map<std::string, Json> places;
  const auto add = [&](const ResidentModel& model) {
    places.try_emplace(model.name, Json::array()).first->second.push(told_place(model));
  };
  for (const ResidentModel& model : Models(engine).resident()) add(model);
  for (const MemoryUsage& part : engine.host_memory().held)
    if (part.kind == "weights" && !part.owner.empty())
      add({"host", part.owner, part.bytes, part.pinned, false, 0});
  Json list = Json::array(), answer = Json::object();
  for (auto& [name, on] : places) {
    Json model = Json::object();
    list.push(std::move(model.set("name", name).set("devices", std::move(on))));
  }
  return json_response(answer.set("models", std::move(list)));
}

HttpResponse tell(const std::vector<ResidentModel>& models, const ServiceParts& parts) {
  Json list = Json::array(), answer = Json::object();
  for (const ResidentModel& model : models) {
    Json one = told_place(model);
    list.push(std::move(one.set("name", model.name)));
    parts.events.publish("model", {},
                         Json(Json::object()
                                  .set("device", model.device)
                                  .set("model", model.name)
                                  .set("pinned", model.is_pinned)));
  }
  return json_response(answer.set("models", std::move(list)));
}

std::string required(const Fields& fields, const char* name) {
  const std::string text = fields.text(name);
  if (text.empty())
    refuse_v1(400, "invalid_argument", cat(quote(name), " is missing."),
              Json(Json::object().set("where", name)));
  return text;
}

// Answers when it is done: a model of 24 GB takes its time (loads_models()).
HttpResponse load(const Call& call, const ServiceParts& parts) {
  const Fields fields(call, {"device", "file", "class_type", "inputs", "workflow", "pin"});
  const std::string device = required(fields, "device"), file = fields.text("file");
  const Json *const workflow = fields.object("workflow"), *const inputs = fields.object("inputs");
  if (file.empty() == (workflow == nullptr))
    refuse_v1(400, "invalid_argument",
              "name either a file, as \"diffusion_models/flux1-dev.safetensors\", or give a "
              "workflow whose models are to be loaded.",
              Json(Json::object().set("where", "file")));
  Models models(parts.engine, parts.ending);
  const Workflow flow =
      workflow != nullptr ? parts.engine.parse(write_json(*workflow))
                          : models.loading(file, fields.text("class_type"),
                                           inputs == nullptr ? std::string() : write_json(*inputs));
  const std::vector<ResidentModel> loaded = models.load(flow, device, fields.flag("pin"));
  parts.runner.models_were_loaded();
  return tell(loaded, parts);
}

HttpResponse set_pinned(const Call& call, const ServiceParts& parts, bool pinned) {
  const Fields fields(call, {"device", "model"});
  const std::string device = required(fields, "device");
  Models models(parts.engine, parts.ending);
  return tell(pinned ? models.pin(device, required(fields, "model"))
                     : models.unpin(device, fields.text("model")),
              parts);
}

HttpResponse unload(const Call& call, const ServiceParts& parts) {
  const Fields fields(call, {"device", "model"});
  const std::uint64_t bytes =
      Models(parts.engine, parts.ending).unload(fields.text("device"), fields.text("model"));
  return json_response(Json(Json::object().set("bytes", bytes)));
}

}  // namespace

bool loads_models(const HttpRequest& head) {
  return head.method == "POST" && head.path.starts_with("/v1/models/");
}

void add_v1_model_routes(Router& router, const ServiceParts& parts) {
  add_v1(router, "GET", "/v1/models", [parts](const Call&) { return list_models(parts.engine); });
  add_v1(router, "POST", "/v1/models/load",
         [parts](const Call& call) { return load(call, parts); });
  add_v1(router, "POST", "/v1/models/pin",
         [parts](const Call& call) { return set_pinned(call, parts, true); });
  add_v1(router, "POST", "/v1/models/unpin",
         [parts](const Call& call) { return set_pinned(call, parts, false); });
  add_v1(router, "POST", "/v1/models/unload",
         [parts](const Call& call) { return unload(call, parts); });
}

}  // namespace heddle::engine
