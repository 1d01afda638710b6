// A call of a node in a worker: heddle_ctx, whose answers come from the engine. Belongs to one
// call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/isolate/worker_lane.h"
#include "engine/run/node_call.h"
#include "engine/tensor/call.h"

namespace heddle::engine {

class WorkerCall final : public heddle_ctx {
 public:
  // `from`: what RemoteCall::write_call() has written.
  WorkerCall(WorkerLane& lane, const heddle_node_desc& desc, BytesReader& from);

  // What the node has given, for the engine. `status`: what it has returned.
  void write_outputs(BytesWriter& to);
  void write_wanted(BytesWriter& to) const;
  bool is_deferred() const { return completion_ != nullptr; }
  // Waits for what the node has enqueued on its device, and gives back what kernels have worked in.
  // Gives what failed.
  heddle_status* finish_device_work();
  heddle_status* wait_until_complete();

  const heddle_value* input(std::uint32_t index) override;
  void set_output(std::uint32_t index, Value value) override;
  heddle_tensor* weight(std::uint32_t slot) override;
  void want(std::string_view input) override;
  std::span<const std::pair<std::string, Value>> extras() override { return extras_; }
  bool cancelled() const override;
  void progress(double fraction, std::string_view note) override;
  void wrote(std::string_view path, std::string_view ui_json) override;
  void warn(std::string_view message) override;
  std::int32_t preview_method() const override { return about_.preview; }
  void preview(const heddle_preview& picture) override;
  void send_picture(std::string_view png) override;
  void do_not_cache() override;
  const char* node() const override { return about_.node.c_str(); }
  const char* device() const override {
    return device_ == nullptr ? "host" : device_->device().name().c_str();
  }
  heddle_dtype compute() const override { return about_.compute; }
  void* stream() override { return device_ == nullptr ? nullptr : device_->native_stream(); }
  Tensor make(const heddle_tensor_info& info) override;
  Tensor make_host(const heddle_tensor_info& info) override;
  Tensor upload(const heddle_tensor_info& info, const void* src) override;
  void read(heddle_tensor* tensor, void* dst, std::size_t bytes) override;
  void op(std::uint32_t op, std::span<heddle_tensor* const> in, std::span<heddle_tensor* const> out,
          std::span<const std::byte> attrs) override;
  Value build_model(std::string_view role, const Checkpoint& checkpoint,
                    const heddle_value* config) override;
  std::unique_ptr<SessionHandle> open(const SessionRequest& request) override;
  std::string find_file(std::string_view folder, std::string_view name) override;
  std::vector<std::string> folder_places(std::string_view folder) override;
  std::string output_folder(std::string_view kind) override;
  std::uint64_t identify_file(std::string_view path) override;
  const heddle_value* saved_state() override;
  bool at_boundary() override;
  void save_state(Value state) override;
  heddle_completion* defer() override;
  NewNodes& new_nodes() override;
  Value look_up(std::string_view id) override;
  std::size_t element() const override { return about_.element; }
  heddle_shard shard(std::uint32_t input) override;

 private:
  struct Finished {
    bool is_complete = false;
    heddle_status* status = nullptr;
  };
  const heddle_value* hold(Value value);

  WorkerLane& lane_;
  WorkerEnd end_;
  const heddle_node_desc& desc_;
  DeviceState* device_ = nullptr;  // that the call is placed on; nullptr: in host memory
  struct About {
    std::string node;
    heddle_dtype compute = 0;
    std::int32_t preview = 0;
    std::uint64_t element = 0;
    std::uint64_t failed_waits = 0;  // on its device, when the call began
  } about_;
  mutable std::atomic<bool> has_heard_cancelled_{false};
  std::vector<Value> inputs_, outputs_;
  std::vector<std::pair<std::string, Value>> extras_;
  std::vector<std::string> wanted_;
  Guarded<std::vector<Value>> held_;  // until the call ends
  std::unique_ptr<NewNodes> new_nodes_;
  std::unique_ptr<heddle_completion> completion_;
  Guarded<Finished> finished_;
  std::condition_variable has_finished_;
};

// The new nodes that a call asks for, in a message.
void write_new_nodes(BytesWriter& to, const NewNodes& nodes, ValueEnd& end);
NewNodes read_new_nodes(BytesReader& from, ValueEnd& end);

}  // namespace heddle::engine
