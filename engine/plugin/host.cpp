#include "engine/plugin/host.h"

#include <string_view>

#include "engine/base/log.h"
#include "engine/device/status.h"

namespace heddle::engine {

namespace {

struct NamedService {
  std::string_view name;
  const void* table;
};

std::vector<NamedService>& offered_instead() {
  static std::vector<NamedService> services;
  return services;
}

const void* service(const heddle_host*, const char* name) {
  static const NamedService all[] = {
      {HEDDLE_SERVICE_VALUE, value_service()},
      {HEDDLE_SERVICE_TENSOR, tensor_service()},
      {HEDDLE_SERVICE_JSON, json_service()},
      {HEDDLE_SERVICE_IO, io_service()},
      {HEDDLE_SERVICE_CALL, call_service()},
      {HEDDLE_SERVICE_REPORT, report_service()},
      {HEDDLE_SERVICE_PREVIEW, preview_service()},
      {HEDDLE_SERVICE_SEND, send_service()},
      {HEDDLE_SERVICE_CACHE, cache_service()},
      {HEDDLE_SERVICE_OPS, ops_service()},
      {HEDDLE_SERVICE_BLOCK, block_service()},
      {HEDDLE_SERVICE_SESSION, session_service()},
      {HEDDLE_SERVICE_COMPLETION, completion_service()},
      {HEDDLE_SERVICE_EXPANSION, expansion_service()},
      {HEDDLE_SERVICE_WORKFLOW, workflow_service()},
      {HEDDLE_SERVICE_RESUME, resume_service()},
      {HEDDLE_SERVICE_PARTS, parts_service()},
      {HEDDLE_SERVICE_STAGES, stages_service()},
      {HEDDLE_SERVICE_FOLDERS, folders_service()},
      {HEDDLE_SERVICE_FILES, files_service()},
      {HEDDLE_SERVICE_INFER, infer_service()},
      {HEDDLE_SERVICE_COST, cost_service()},
      {HEDDLE_SERVICE_LEAST_COST, least_cost_service()},
      {HEDDLE_SERVICE_VALIDATION, validation_service()},
      {HEDDLE_SERVICE_CHECKPOINT, checkpoint_service()},
      {HEDDLE_SERVICE_GRAPH, graph_service()},
      {HEDDLE_SERVICE_MODEL, model_service()},
      {HEDDLE_SERVICE_JOINED_MODEL, joined_model_service()},
      {HEDDLE_SERVICE_WEIGHT_CHANGE, weight_change_service()},
      {HEDDLE_SERVICE_REGISTRY, registry_service()},
  };
  const std::string_view asked = name == nullptr ? "" : name;
  for (const NamedService& service : offered_instead())
    if (service.name == asked) return service.table;
  for (const NamedService& service : all)
    if (service.name == asked) return service.table;
  return nullptr;
}

}  // namespace

void offer_instead(const char* service_name, const void* table) {
  offered_instead().push_back({service_name, table});
}

const heddle_host* plugin_host() {
  static const heddle_host host{
      sizeof(heddle_host),
      HEDDLE_ABI_MAJOR,
      HEDDLE_ABI_MINOR,
      "heddle",
      kEngineVersion,
      &service,
      [](const heddle_host*, heddle_code code, const char* message) {
        return make_status(code, message);
      },
      [](const heddle_status* status) { return heddle_code(status->error.code()); },
      [](const heddle_status* status) { return status->error.what(); },
      &free_status,
      [](const heddle_host*, heddle_level level, const char* message) {
        log(Level(level), message == nullptr ? "" : message);
      }};
  return &host;
}

}  // namespace heddle::engine
