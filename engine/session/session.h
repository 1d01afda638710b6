// A model opened for a loop on one device or several. The plan is made at the first step, when the
// shapes are known; from then on a step enqueues a fixed list of kernel launches and copies on
// fixed addresses (prepared_session.h). Where memory runs out, it is set up anew with less; where
// it streams and memory comes free, with more. Used by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/graph/model.h"
#include "engine/session/freed_memory.h"
#include "engine/session/prepared_session.h"
#include "engine/session/session_view.h"

namespace heddle::engine {

class Session final : public SessionHandle {
 public:
  // Asked once, at the first step, when all shapes are known.
  using ChooseDevices = std::function<SessionDeviceSlots(const Model& model, const CallSpec& call)>;

  // Whether what is launched next is still wanted; may give nullptr.
  using Cancel = std::function<CancelFlag*()>;

  // `cancelled` is asked between blocks; the session then throws cancelled. `timeline` may be
  // nullptr; otherwise it has to outlive the session, and is notified of blocks, transfers and
  // weights. `cancel` is asked for every launch, and may be empty.
  Session(ChooseDevices choose_devices, SessionRequest request, std::function<bool()> cancelled,
          Timeline* timeline = nullptr, Cancel cancel = {});

  std::vector<Value> step(std::uint32_t index, std::span<const heddle_value* const> sets) override;

  // Weights that page-ins have merged with patches so far: each once, where host memory has room.
  std::uint64_t merged_pages() const {
    return prepared_ == nullptr ? 0 : prepared_->merged_pages();
  }
  const SessionPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  // Segments of launches that its devices keep and replay.
  std::size_t captured_graphs() const {
    return prepared_ == nullptr ? 0 : prepared_->captured_graphs();
  }

 private:
  CallSpec call_spec(std::span<const heddle_value* const> sets) const;
  // Gives the turns to load, which end with the first step: its weights come during that.
  std::vector<LoadTurns::Turn> prepare(std::span<const heddle_value* const> sets);
  std::vector<LoadTurns::Turn> take_load_turns() const;  // on all devices of the session
  // Gives back all that was set up; waits for the devices. The next step sets up anew, with what
  // set_limits() allows.
  void tear_down();
  void set_limits(int attempt);
  // Of a session that streams; by device slot.
  bool streams() const;
  std::vector<std::uint64_t> usable_now() const;
  // Gives back all that was set up where enough memory has come free that it is worth it.
  void use_freed_memory(std::uint32_t index);

  const SessionContext context_;
  const ChooseDevices choose_devices_;
  SessionDeviceSlots devices_;
  std::vector<std::uint64_t> limits_;  // bytes, by device slot, beside the budgets; empty: none
  std::optional<SessionPlan> plan_;
  FreedMemory freed_;
  bool may_capture_ = true;                    // until memory has run out with captured graphs
  std::unique_ptr<PreparedSession> prepared_;  // nullptr: not yet, or torn down
};

}  // namespace heddle::engine
