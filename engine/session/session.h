// A model opened for a loop on one device or several. The plan is made at the first step, when the shapes are known; from then
// on a step enqueues a fixed list of kernel launches and copies on fixed addresses. Used by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/graph/model.h"
#include "engine/memory/weights.h"
#include "engine/program/session_plan.h"
#include "engine/program/weight_sources.h"
#include "engine/resources/timeline.h"
#include "engine/session/session_pages.h"
#include "engine/session/session_recordings.h"
#include "engine/tensor/call.h"
#include "engine/transfer/arrival.h"

namespace heddle::core {

struct SessionPlace {
  DeviceState* state = nullptr;
  WeightStore* weights = nullptr;
  std::uint64_t budget = kNoLimit;  // bytes that the session may use there
  DeviceRates rates = {};
  std::uint64_t spare = 0;  // bytes beyond the budget, where it cannot do without: weights are then read one at a time
};

// A device that takes no part, as a source of streamed weights.
struct SessionDonor {
  Donor offer;
  WeightStore* weights = nullptr;
};

struct SessionPlaces {
  std::vector<SessionPlace> places;  // the placement's devices in its order, then home when it is none of them
  std::uint32_t home = 0;            // of the caller
  CallPlacement placement;           // its devices are the first places
  std::vector<SessionDonor> donors = {};
  std::shared_ptr<Ledger> host_memory = nullptr;  // nullptr: it has no budget
  std::uint64_t pinned_bytes = 0;  // as in SessionSpec
};

class Session final : public SessionHandle {
 public:
  // Asked once, at the first step, when all shapes are known.
  using Place = std::function<SessionPlaces(const Model& model, const CallSpec& call)>;

  // Whether what is launched next is still wanted; may give nullptr.
  using Cancel = std::function<CancelFlag*()>;

  // `cancelled` is asked between blocks; the session then throws cancelled. `timeline` may be nullptr; otherwise it has
  // to outlive the session, and is told of blocks, transfers and weights. `cancel` is asked for every launch, and may be empty.
  Session(Place place, SessionRequest request, std::function<bool()> cancelled, Timeline* timeline = nullptr, Cancel cancel = {});
  ~Session() override;

  std::vector<Value> step(std::uint32_t index, std::span<const heddle_value* const> sets) override;

  // Weights that page-ins have merged with patches so far: each once, where host memory has room.
  std::uint64_t merged_pages() const { return pages_ == nullptr ? 0 : pages_->merges(); }
  const SessionPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  // Stretches of launches that its devices keep and replay.
  std::size_t recordings() const { return recordings_ == nullptr ? 0 : recordings_->count(); }

 private:
  // A launch with its addresses filled in.
  struct Launch {
    const heddle_kernel* kernel = nullptr;
    std::uint32_t place = 0;
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

  // Setting up, at the first step, and again with less where memory has run out.
  CallSpec call_spec(std::span<const heddle_value* const> sets) const;
  void prepare(std::span<const heddle_value* const> sets);
  void make_plan(const CallSpec& call);
  void make_plan_with_spare(const CallSpec& call);
  WeightSource weight_source(const SessionStorage& storage) const;
  // What will be wanted is read from disk while others work: by load_weights(), and by the page-ins of the coming steps.
  void add_expectation(std::vector<Expectation>& to, std::uint32_t place, const std::vector<FilePart>& parts, UseOrder order) const;
  std::vector<Expectation> expect_weights() const;
  std::vector<Expectation> expect_pages(std::initializer_list<Rate> phases, UseOrder order) const;
  std::vector<Reservation> reserve() const;  // by place
  void load_weights(std::vector<Reservation>& claims);
  void prepare_pages();
  std::vector<std::shared_ptr<const DeviceWeight>> lent_weights();  // by page; nullptr: from host memory
  void bring_externals();
  void fill_addresses();
  std::byte* address(const Operand& operand) const;
  Launch make_launch(const PlannedOp& op) const;
  std::unique_ptr<Crossing> make_crossing(const PlannedTransfer& transfer);
  // The input of a lane: its items, where the batch is split.
  Tensor lane_input(const heddle_value& record, const SessionStorage& storage) const;

  // A step.
  std::vector<Value> try_step(std::uint32_t index, std::span<const heddle_value* const> sets);
  // Lets go of all that was set up; waits for the devices. The next step sets up anew, with what set_limits() allows.
  void tear_down();
  void set_limits(int attempt);
  void leave_devices();
  void write_step_inputs(std::span<const heddle_value* const> sets);
  void run(Rate phase, bool is_last = false);
  void record_step();
  void bring_first_pages();
  void launch(const Launch& launch, NodeIndex node);
  void enqueue(const Launch& launch, NodeIndex node, Stream& stream);
  void join_places();
  WorkWatch transfer_watch(const PlannedTransfer& transfer) const;  // empty without a timeline
  WorkWatch weight_watch(const SessionStorage& storage) const;
  std::vector<Value> collect_outputs();
  Tensor output_tensor(const SessionPlan::Output& output) const;

  CancelFlag* cancel_flag() const { return cancel_ ? cancel_() : nullptr; }
  DeviceState& state(std::uint32_t place) const { return *places_.places[place].state; }

  Place place_;
  SessionRequest request_;
  std::function<bool()> cancelled_;
  Timeline* const timeline_;
  const Cancel cancel_;
  std::shared_ptr<const Model> model_;
  SessionPlaces places_;
  bool is_set_up_ = false;
  std::vector<std::uint64_t> limits_;  // bytes, by place, beside the budgets; empty: none
  std::optional<SessionPlan> plan_;
  struct Arenas {
    std::shared_ptr<DeviceMemory> persistent, scratch, ring;
  };
  std::vector<Arenas> arenas_;                                // by place
  std::vector<std::shared_ptr<const DeviceWeight>> weights_;  // by storage
  std::vector<Tensor> externals_;                             // by storage: constants and schedules, brought to their place
  std::vector<Launch> launches_;                              // by op of the plan
  std::vector<std::unique_ptr<Crossing>> crossings_;          // by transfer of the plan
  std::vector<Slice> slices_;
  std::unique_ptr<SessionRecordings> recordings_;             // of the step; nullptr: not yet, or not worth it
  bool may_record_ = true;                                    // until memory has run out with recordings
  std::uint32_t steps_enqueued_ = 0;                          // since it was set up
  std::unique_ptr<SessionPages> pages_;                       // of the plan; nullptr: nothing is streamed
  std::vector<Expectation> expected_pages_;                   // of the phase under way
  bool first_pages_are_here_ = false;                         // those that a step expects of the one before
  std::vector<std::unique_ptr<Event>> reached_;               // by place: where join_places() was
  std::vector<std::unique_ptr<Event>> step_done_;             // a ring of two
};

}  // namespace heddle::core
