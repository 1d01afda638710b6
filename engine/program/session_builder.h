// The plan of a session while it is written: what is enqueued, phase by phase, and from when to
// when every storage is in use. Knows nothing of which value is where (session_values.h). For
// plan_session() alone.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/program/session_memory.h"
#include "engine/program/session_plan.h"

namespace heddle::engine {

class SessionBuilder {
 public:
  // The arguments are borrowed.
  SessionBuilder(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose);

  SessionPlan& plan() { return plan_; }
  const SessionPlan& plan() const { return plan_; }
  void begin_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  // The op that is enqueued next, for lifetimes; and how many actions of the phase stand before it.
  std::uint32_t now() const { return std::uint32_t(plan_.ops.size() + 1); }
  std::size_t position() const { return plan_.phases[int(phase_)].size(); }

  std::uint32_t device_slot_of(const Operand& value) const {
    return plan_.storages[value.storage].device_slot;
  }
  std::int32_t add_storage(SessionStorage storage);
  std::int32_t add_scratch(std::uint32_t device_slot, std::uint64_t bytes);
  // The same storage for the same weight.
  std::int32_t weight(NodeIndex n, std::uint32_t slot, std::uint32_t device_slot,
                      std::uint32_t rank);
  void use(std::int32_t storage, Phase phase, std::uint32_t at) { uses_[storage].add(phase, at); }

  void begin_block(SessionPlan::Block block);
  void launch(NodeIndex n, std::uint32_t branch, std::uint32_t device_slot, std::uint32_t op,
              std::vector<Operand> in, std::vector<Operand> out, std::vector<std::byte> attrs = {});
  // Of an op whose workspace is in use from `at` on.
  void choose_kernel(PlannedOp& planned, std::uint32_t at);
  // At the beginning of each step: one row of `value` is copied to the operand that this returns.
  Operand add_slice(const Operand& value, std::uint32_t branch, std::uint32_t device_slot);

  // A copy, or the order alone where memory is shared. `from_op`: since when what arrives has its
  // room, as in now().
  PlannedTransfer transfer_to(Source source, std::uint32_t branch, const Operand& value,
                              std::uint32_t device_slot, Phase phase, std::uint32_t from_op);
  // `position`: how many actions of its phase stand before the transfer. Gives its number.
  std::uint32_t add_transfer(PlannedTransfer transfer, Phase phase, std::size_t position);
  std::uint32_t send(Source source, std::uint32_t branch, const Operand& value,
                     std::uint32_t device_slot, Phase phase, std::size_t position);
  void await(std::uint32_t transfer, Phase phase);

  // Puts the transfers where they start, lays out the memory and keeps the budgets. Once, at last.
  SessionPlan finish();

 private:
  void act(SessionAction::Kind kind, std::size_t index) {
    plan_.phases[int(phase_)].push_back({kind, std::uint32_t(index)});
  }
  void insert_transfers();
  std::optional<SessionPlan> finish_with_lanes() const;

  const Graph& graph_;
  const SessionSpec& spec_;
  const ChooseKernel& choose_;
  SessionPlan plan_;
  Phase phase_ = Phase::loop_invariant;
  std::vector<StorageUse> uses_;     // by storage
  std::set<std::uint32_t> awaited_;  // transfers
  std::array<std::vector<std::pair<std::size_t, std::uint32_t>>, 3>
      sent_;  // by phase: actions before, transfer
  // By node, slot, device slot and rank.
  std::map<std::tuple<NodeIndex, std::uint32_t, std::uint32_t, std::uint32_t>, std::int32_t>
      weights_;
};

// Rows [begin, begin + count) of an operand along an axis.
Operand part_of(const Operand& whole, std::uint32_t axis, std::int64_t begin, std::int64_t count);

// Row-major, whatever it was.
heddle_tensor_info dense(heddle_tensor_info info, const char* what);

// The shape a step sees of a value that exists for all steps.
heddle_tensor_info one_row(const heddle_tensor_info& info);

}  // namespace heddle::engine
