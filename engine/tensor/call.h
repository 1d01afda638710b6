// One call of one node, as the services of the C ABI see it: heddle_ctx. Two things implement it:
// the executor's call of a workflow node, which runs (run/node_call), and the trace of a block
// (program/tracer). What a call cannot do throws unsupported. Functions marked any-thread are; all
// others belong to the thread of the call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/tensor/new_nodes.h"
#include "engine/tensor/value.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

// An op's name as a number, the same in the whole process; names are never forgotten. Any thread.
std::uint32_t op_id(std::string_view name);
const char* op_name(std::uint32_t id);

class Checkpoint;  // floor 2

// A model opened for a loop, behind heddle_session.
class SessionHandle {
 public:
  virtual ~SessionHandle() = default;
  virtual std::vector<Value> step(std::uint32_t index,
                                  std::span<const heddle_value* const> sets) = 0;
};

struct SessionRequest {
  Value model;
  std::vector<Value> constants;  // a record for each set
  Value schedule;                // a record, or empty
  std::uint32_t step_count = 1;
};

}  // namespace heddle::engine

struct heddle_ctx {
  virtual ~heddle_ctx() = default;
  virtual const heddle_value* input(std::uint32_t index) = 0;  // nullptr: absent
  virtual void set_output(std::uint32_t index, heddle::engine::Value value) = 0;
  virtual heddle_tensor* weight(std::uint32_t slot) = 0;
  virtual void want(std::string_view input) = 0;
  virtual std::span<const std::pair<std::string, heddle::engine::Value>> extras() = 0;

  virtual bool cancelled() const = 0;                                 // any thread
  virtual void progress(double fraction, std::string_view note) = 0;  // any thread
  virtual void wrote(std::string_view path,
                     std::string_view ui_json) = 0;  // any thread; either may be empty
  virtual void warn(std::string_view message) = 0;   // any thread
  virtual std::int32_t preview_method() const { return HEDDLE_PREVIEW_NONE; }  // any thread
  virtual void preview(const heddle_preview&) {}                               // any thread
  virtual void send_picture(std::string_view png) {                            // any thread
    (void)png;
  }
  virtual void do_not_cache() {}  // any thread
  virtual const char* node() const = 0;
  virtual const char* device() const = 0;
  virtual heddle_dtype compute() const = 0;
  virtual void* stream() = 0;

  virtual heddle::engine::Tensor make(const heddle_tensor_info& info) = 0;
  virtual heddle::engine::Tensor make_host(const heddle_tensor_info& info) = 0;
  virtual heddle::engine::Tensor upload(const heddle_tensor_info& info, const void* src) = 0;
  virtual void read(heddle_tensor* tensor, void* dst, std::size_t bytes) = 0;
  virtual void op(std::uint32_t op, std::span<heddle_tensor* const> in,
                  std::span<heddle_tensor* const> out, std::span<const std::byte> attrs) = 0;

  // A MODEL of the best family for that role. `checkpoint` is a Checkpoint of floor 2, `config` a
  // record or nullptr.
  virtual heddle::engine::Value build_model(std::string_view role,
                                            const heddle::engine::Checkpoint& checkpoint,
                                            const heddle_value* config) = 0;
  virtual std::unique_ptr<heddle::engine::SessionHandle> open(
      const heddle::engine::SessionRequest& request) = 0;
  virtual std::string find_file(std::string_view folder, std::string_view name) = 0;
  // Where find_file() looks; empty where the call has no files.
  virtual std::vector<std::string> folder_places(std::string_view) { return {}; }
  virtual std::string output_folder(std::string_view kind) = 0;
  virtual std::uint64_t identify_file(std::string_view path) = 0;
  virtual heddle_completion* defer() = 0;
  // heddle_resume_service: what an earlier call has saved, or nullptr; whether the state is wanted;
  // the state, after which it throws where the call does not go on.
  virtual const heddle_value* saved_state() { return nullptr; }
  virtual bool at_boundary() { return false; }
  virtual void save_state(heddle::engine::Value state);
  // heddle_parts_service. False: nobody reads the output before it is whole.
  virtual bool begin_output(std::uint32_t output, heddle::engine::Tensor) {
    (void)output;
    return false;
  }
  virtual void made_rows(std::uint32_t output, std::int64_t rows) { (void)output, (void)rows; }
  virtual void take_back_output(std::uint32_t output) { (void)output; }
  virtual void await_rows(const heddle_tensor&, std::int64_t rows) { (void)rows; }
  // heddle_stages_service: rounds to be ahead, 0 where one device does all stages.
  virtual std::uint32_t begin_stages() { return 0; }
  virtual void set_written(heddle_tensor&) {}
  virtual void join_stages() {}
  virtual void end_stages() {}
  // What the call asks for; of workflow nodes flagged HEDDLE_NODE_EXPANDS.
  virtual heddle::engine::NewNodes& new_nodes() = 0;
  // A node of the run, as heddle_workflow_service tells it; empty: there is none.
  virtual heddle::engine::Value look_up(std::string_view id) = 0;
  virtual std::size_t element() const { return 0; }  // of a list, which the call is for
  // Of no other run that is under way; 0: the call belongs to none.
  virtual std::uint64_t run() const { return 0; }
  // Counts host memory that others allocate as make_host() counts its own, for as long as the
  // result lives; nullptr: nobody counts.
  virtual std::shared_ptr<void> count_host(std::uint64_t bytes, std::string_view what) {
    (void)bytes, (void)what;
    return nullptr;
  }
  virtual heddle_group group() const { return {sizeof(heddle_group), HEDDLE_GROUP_NONE, 0, 1}; }
  virtual heddle_shard shard(std::uint32_t input) = 0;  // blocks only
};
