// What plugins see of the engine: one heddle_host for the process, with its services. Process-wide
// because a plugin is loaded once into a process, however many engines there are. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "engine/files/checkpoint.h"
#include "heddle/abi/joined_model.h"
#include "heddle/abi/least_cost.h"
#include "heddle/abi/model.h"
#include "heddle/abi/parts.h"
#include "heddle/abi/send.h"
#include "heddle/abi/stages.h"
#include "heddle/abi/weight_change.h"

namespace heddle::engine {

const heddle_host* plugin_host();

// From now on plugins are given this table by that name: in a worker, where the engine is another
// process. Before any plugin is loaded.
void offer_instead(const char* service_name, const void* table);

inline constexpr const char* kEngineVersion = "0.1.0";

// The tables, each looked up by its name; one file for each subject.
const heddle_value_service* value_service();
// Whether a maker of values gave NULL to this thread since the last question.
bool take_lack_of_memory() noexcept;
const heddle_tensor_service* tensor_service();
const heddle_json_service* json_service();
const heddle_io_service* io_service();
const heddle_call_service* call_service();
const heddle_report_service* report_service();
const heddle_cache_service* cache_service();
const heddle_preview_service* preview_service();
const heddle_send_service* send_service();
const heddle_ops_service* ops_service();
const heddle_block_service* block_service();
const heddle_session_service* session_service();
const heddle_completion_service* completion_service();
const heddle_expansion_service* expansion_service();
const heddle_workflow_service* workflow_service();
const heddle_resume_service* resume_service();
const heddle_parts_service* parts_service();
const heddle_stages_service* stages_service();
const heddle_folders_service* folders_service();
const heddle_files_service* files_service();
const heddle_infer_service* infer_service();
const heddle_cost_service* cost_service();
const heddle_least_cost_service* least_cost_service();
const heddle_validation_service* validation_service();
const heddle_checkpoint_service* checkpoint_service();
const heddle_graph_service* graph_service();
const heddle_model_service* model_service();
const heddle_joined_model_service* joined_model_service();
const heddle_weight_change_service* weight_change_service();
const heddle_registry_service* registry_service();

}  // namespace heddle::engine

// A checkpoint on its way through the C ABI.
struct heddle_checkpoint {
  explicit heddle_checkpoint(heddle::engine::Checkpoint c);
  std::atomic<std::uint32_t> refs{1};
  const heddle::engine::Checkpoint checkpoint;
  std::string path;
  std::vector<heddle_tensor_info> infos;  // of checkpoint.tensors(), in their order
};
