#include "engine/plugin/host.h"

#include <string_view>

#include "engine/base/log.h"
#include "engine/device/status.h"

namespace heddle::core {

namespace {

const void* service(const heddle_host*, const char* id) {
  const std::string_view asked = id == nullptr ? "" : id;
  if (asked == HEDDLE_SERVICE_VALUE) return value_service();
  if (asked == HEDDLE_SERVICE_TENSOR) return tensor_service();
  if (asked == HEDDLE_SERVICE_JSON) return json_service();
  if (asked == HEDDLE_SERVICE_EXEC) return exec_service();
  if (asked == HEDDLE_SERVICE_FILES) return files_service();
  if (asked == HEDDLE_SERVICE_INFER) return infer_service();
  if (asked == HEDDLE_SERVICE_CHECKPOINT) return checkpoint_service();
  if (asked == HEDDLE_SERVICE_GRAPH) return graph_service();
  if (asked == HEDDLE_SERVICE_MODEL) return model_service();
  if (asked == HEDDLE_SERVICE_REGISTRY) return registry_service();
  return nullptr;
}

}  // namespace

const heddle_host* plugin_host() {
  static const heddle_host host{sizeof(heddle_host),
                                HEDDLE_ABI_MAJOR,
                                HEDDLE_ABI_MINOR,
                                "heddle",
                                kEngineVersion,
                                &service,
                                [](const heddle_host*, heddle_code code, const char* message) { return make_status(code, message); },
                                [](const heddle_status* status) { return heddle_code(status->error.code()); },
                                [](const heddle_status* status) { return status->error.what(); },
                                &free_status,
                                [](const heddle_host*, heddle_level level, const char* message) {
                                  log(Level(level), message == nullptr ? "" : message);
                                }};
  return &host;
}

}  // namespace heddle::core
