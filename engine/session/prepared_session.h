// A session that is set up: memory taken, weights loaded, and every address filled in, so that a
// step enqueues a fixed list of launches and copies. Whole from set_up() to the destructor, which
// leaves nothing behind that its devices do not wait for. Used by one thread at a time.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/session/session_buffers.h"
#include "engine/session/session_graphs.h"
#include "engine/session/session_pages.h"
#include "engine/session/session_view.h"
#include "engine/tensor/call.h"
#include "engine/transfer/copy_task.h"

namespace heddle::engine {

class PreparedSession {
 public:
  // What the view borrows outlives this.
  explicit PreparedSession(const SessionView& view) : view_(view), buffers_(view_) {}
  PreparedSession(const PreparedSession&) = delete;
  PreparedSession& operator=(const PreparedSession&) = delete;
  ~PreparedSession();

  // Once, before the first step; runs what does not depend on the step. Throws cancelled, what
  // loading and launching throw, and out_of_memory: then this can only be destroyed.
  void set_up();
  // `may_record`: whether launches may be recorded, where that is worth it.
  std::vector<Value> step(std::uint32_t index, std::span<const heddle_value* const> sets,
                          bool may_record);

  bool has_recordings() const { return graphs_ != nullptr; }
  std::size_t captured_graphs() const { return graphs_ == nullptr ? 0 : graphs_->count(); }
  std::uint64_t merged_pages() const { return pages_ == nullptr ? 0 : pages_->merges(); }

 private:
  // A launch with its addresses filled in.
  struct Launch {
    const heddle_kernel* kernel = nullptr;
    std::uint32_t device_slot = 0;
    std::vector<heddle_view> views;
    std::vector<const heddle_view*> pointers;
    heddle_op_call call{};
    void* workspace = nullptr;
  };
  struct Slice {
    Launch launch;
    std::byte* base = nullptr;
    std::int64_t row_bytes = 0;
  };

  // Setting up.
  void fill_addresses();
  // The launch of an op of the plan. Loads the weights that it reads, if they are not there yet;
  // `before_loading` is told first.
  const Launch& launch_of(std::uint32_t op, const std::function<void()>& before_loading);
  Launch make_launch(const PlannedOp& op) const;
  std::unique_ptr<CopyTask> make_copy_task(const PlannedTransfer& transfer);
  void prepare_pages();
  std::vector<std::shared_ptr<const DeviceWeight>> lent_weights();  // by page; nullptr: from host
                                                                    // memory
  std::vector<std::shared_ptr<const DeviceWeight>> lent_by(std::size_t donor);
  // What page-ins will want is read from disk while others work.
  std::vector<Expectation> expect_pages(std::initializer_list<Phase> phases, UseOrder order) const;

  // A step.
  void write_step_inputs(std::span<const heddle_value* const> sets);
  void copy_slices(std::uint32_t index);
  void bring_first_pages();
  void capture_step();
  void run(Phase phase, bool is_last = false);
  void launch(const Launch& launch, NodeIndex node);
  void enqueue(const Launch& launch, NodeIndex node, Stream& stream);
  void replay(const SessionGraphs::Segment& segment);
  void join_devices();
  std::vector<Value> collect_outputs();
  void set_written(const std::vector<Value>& results);
  heddle_tensor_info whole_output(const SessionPlan::Output& output) const;

  const SessionView view_;
  SessionBuffers buffers_;
  std::vector<std::optional<Launch>> launches_;        // by op of the plan; its weights are there
  std::vector<std::unique_ptr<CopyTask>> copy_tasks_;  // by transfer of the plan
  std::vector<Slice> slices_;
  std::unique_ptr<SessionGraphs> graphs_;  // of the step; nullptr: not yet, or not worth it
  std::uint32_t steps_enqueued_ = 0;
  std::unique_ptr<SessionPages> pages_;            // of the plan; nullptr: nothing is streamed
  std::vector<Expectation> expected_pages_;        // of the phase under way
  bool first_pages_are_here_ = false;              // those that a step expects of the one before
  std::vector<std::unique_ptr<Event>> reached_;    // by device slot: where join_devices() was
  std::vector<std::unique_ptr<Event>> step_done_;  // a ring of two
};

}  // namespace heddle::engine
