// One call of a node in a worker: sends it, and serves what the node asks until it has ended.
// Belongs to one thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "engine/isolate/description.h"
#include "engine/isolate/worker_process.h"
#include "engine/run/node_call.h"
#include "engine/tensor/call.h"
#include "heddle/abi/infer.h"

namespace heddle::engine {

// Values on their way to a worker and out of it.
class EngineEnd final : public ValueEnd {
 public:
  // `ctx`: the call whose memory counts; nullptr: none.
  EngineEnd(std::shared_ptr<WorkerProcess> worker, std::string plugin, heddle_ctx* ctx)
      : worker_(std::move(worker)), plugin_(std::move(plugin)), ctx_(ctx) {}
  void write_tensor(BytesWriter& to, const Tensor& tensor) override;
  Tensor read_tensor(BytesReader& from) override;
  void write_handle(BytesWriter& to, const heddle_value& value) override;
  Value read_handle(BytesReader& from) override;
  // Tensors that nobody looks at stay where they are (HEDDLE_PORT_PASS).
  void keep_tensors(bool stay) { tensors_stay_ = stay; }
  // Tensors on this device stay there; `ctx` is placed on it.
  // `claim`: what has been claimed there for the node, of which its memory is taken first.
  void use_device(DeviceState* device, Reservation* claim) {
    device_ = device;
    claim_ = claim;
  }
  // Memory of that device for the worker to write: its id.
  std::uint64_t make_device_memory(std::uint64_t bytes, std::string_view what);
  // Before it is told: what the engine has enqueued on memory that it is given is done.
  void finish_device_work();
  bool uses_device() const { return device_ != nullptr; }
  bool has_read_objects() const { return has_read_objects_; }
  // What has been written is the worker's to let go, or, where it has not been sent, the engine's.
  // What counts memory in the call's name.
  CountBytes counter(std::string what) const;
  void has_sent() noexcept;
  void take_back() noexcept;

 private:
  void write_shared(BytesWriter& to, const heddle_tensor_info& info, std::uint64_t id,
                    std::uint64_t offset);
  void lend(const std::shared_ptr<SharedStorage>& storage);
  bool is_on_device(const Tensor& tensor) const;
  void write_on_device(BytesWriter& to, const Tensor& tensor);
  void write_lent(BytesWriter& to, Value value);
  const std::shared_ptr<WorkerProcess> worker_;
  const std::string plugin_;
  heddle_ctx* const ctx_;
  DeviceState* device_ = nullptr;
  Reservation* claim_ = nullptr;
  std::vector<std::uint64_t> unsent_memory_, unsent_values_;
  bool tensors_stay_ = false, has_read_objects_ = false, has_lent_of_device_ = false;
};

// The worker that a value within `value` belongs to; nullptr: none does. Throws unsupported for
// values of two workers.
std::shared_ptr<WorkerProcess> worker_of(const heddle_value& value);

class RemoteCall {
 public:
  struct Of {            // what is called
    std::string plugin;  // id
    const DescribedNode* node = nullptr;
    std::uint32_t type = 0;
    std::uint64_t instance = 0;
    double most_seconds = 0;  // 0: no limit
    bool may_use_devices = false;
  };
  RemoteCall(std::shared_ptr<WorkerProcess> worker, Of of, heddle_ctx* ctx);
  ~RemoteCall();
  RemoteCall(const RemoteCall&) = delete;

  heddle_status* need();
  heddle_status* fingerprint(std::uint64_t* hash);
  heddle_status* infer(heddle_infer* question);
  heddle_status* validate(heddle_validation* question);
  // May go on behind its return, in a thread of its own (heddle_completion).
  static heddle_status* execute(std::unique_ptr<RemoteCall> call);

 private:
  using Clock = std::chrono::steady_clock;
  void begin(CallKind kind);
  void write_inputs(CallKind kind, BytesWriter& to);
  DeviceState* device_of_call() const;
  // False: the call goes on behind execute(). Throws where the worker ends.
  bool serve_until_result(std::string& result);
  // Gives the result to `take`, and the lane back. Throws what the node failed with.
  template <class F>
  void finish(const std::string& result, F&& take);
  template <class F>
  heddle_status* run(CallKind kind, F&& take);
  void take_outputs(BytesReader& from);
  static void go_on_later(std::unique_ptr<RemoteCall> call);
  void check_time();
  void check_while_waiting();
  std::string whose() const;  // which node type of which plugin, as a failure begins
  [[noreturn]] void lost(bool hangs);
  [[noreturn]] void gone_wild(const Error& what);  // it says what no worker says

  bool hear(LaneMessage kind, BytesReader& from);  // what nobody answers; false: another kind
  void answer(LaneMessage kind, BytesReader& from);
  void answer_call(LaneMessage kind, BytesReader& from, BytesWriter& to);
  void answer_state(LaneMessage kind, BytesReader& from, BytesWriter& to);
  void answer_question(LaneMessage kind, BytesReader& from, BytesWriter& to);

  const std::shared_ptr<WorkerProcess> worker_;
  std::uint64_t number_ = 0;  // among the calls of the worker
  const Of of_;
  heddle_ctx* const ctx_;
  NodeCall* const node_call_;  // the same, where a run has made it
  heddle_infer* infer_ = nullptr;
  heddle_validation* validation_ = nullptr;
  EngineEnd end_;
  std::unique_ptr<Lane> lane_;
  Clock::time_point begun_{};
  Clock::duration served_{};  // of the time since then: what the engine has worked for it
  bool knows_end_ = false;    // of the worker
};

}  // namespace heddle::engine
