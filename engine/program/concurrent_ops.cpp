#include "engine/program/concurrent_ops.h"

#include <algorithm>
#include <array>

namespace heddle::engine {

namespace {

using Kind = SessionStorage::Kind;

// The memory of a step, divided where a storage begins or ends, with who touched each part last.
class Touched {
 public:
  Touched(const SessionPlan& plan, std::span<const std::uint32_t> ops) : plan_(plan) {
    for (const std::uint32_t op : ops)
      each_storage(plan.ops[op], [&](const SessionStorage& storage, bool) {
        std::vector<std::uint64_t>& ends = ends_[arena_of(storage)];
        ends.push_back(storage.offset);
        ends.push_back(storage.offset + storage.bytes);
      });
    for (std::size_t arena = 0; arena < ends_.size(); ++arena) {
      std::ranges::sort(ends_[arena]);
      ends_[arena].erase(std::unique(ends_[arena].begin(), ends_[arena].end()), ends_[arena].end());
      parts_[arena].resize(ends_[arena].size());
    }
  }

  // The last op of the other lane that this one, the next, has to come behind; -1: none.
  std::int32_t add(std::int32_t place, std::uint32_t lane, const PlannedOp& op) {
    static_assert(kLanes == 2);
    std::int32_t after = -1;
    each_storage(op, [&](const SessionStorage& storage, bool is_written) {
      each_part(storage, [&](Part& part) {
        after = std::max(after, part.written[1 - lane]);
        if (is_written) after = std::max(after, part.read[1 - lane]);
      });
    });
    each_storage(op, [&](const SessionStorage& storage, bool is_written) {
      each_part(storage,
                [&](Part& part) { (is_written ? part.written : part.read)[lane] = place; });
    });
    return after;
  }

 private:
  struct Part {
    std::array<std::int32_t, kLanes> read{-1, -1}, written{-1, -1};  // by lane: places
  };

  // Those that a step writes somewhere; all others are read by everybody.
  static bool is_written_in_steps(const SessionStorage& storage) {
    return storage.kind == Kind::scratch || storage.kind == Kind::persistent ||
           storage.kind == Kind::step_input;
  }
  static std::size_t arena_of(const SessionStorage& storage) {
    return storage.kind == Kind::scratch ? 0 : 1;
  }
  // F(storage, whether it is written).
  template <class F>
  void each_storage(const PlannedOp& op, F&& f) const {
    const auto visit = [&](std::int32_t s, bool is_written) {
      if (s < 0) return;
      const SessionStorage& storage = plan_.storages[s];
      if (is_written_in_steps(storage) && storage.bytes > 0) f(storage, is_written);
    };
    for (const Operand& o : op.op.in) visit(o.storage, false);
    for (const Operand& o : op.op.out) visit(o.storage, true);
    visit(op.workspace, true);
  }
  template <class F>
  void each_part(const SessionStorage& storage, F&& f) {
    const std::size_t arena = arena_of(storage);
    const std::vector<std::uint64_t>& ends = ends_[arena];
    auto at = std::size_t(std::ranges::lower_bound(ends, storage.offset) - ends.begin());
    for (; ends[at] < storage.offset + storage.bytes; ++at) f(parts_[arena][at]);
  }

  const SessionPlan& plan_;
  std::array<std::vector<std::uint64_t>, 2> ends_;  // by arena: where parts begin
  std::array<std::vector<Part>, 2> parts_;
};

}  // namespace

std::vector<ConcurrentOp> concurrent_ops(const SessionPlan& plan,
                                         std::span<const std::uint32_t> ops) {
  Touched touched(plan, ops);
  std::vector<ConcurrentOp> found;
  std::array<std::int32_t, kLanes> waited{-1, -1};  // by lane: the last place of the other one
  for (const std::uint32_t index : ops) {
    const PlannedOp& op = plan.ops[index];
    const std::uint32_t lane = lane_of(op.branch);
    std::int32_t after = touched.add(std::int32_t(found.size()), lane, op);
    if (after <= waited[lane])
      after = -1;
    else
      waited[lane] = after;
    found.push_back({lane, after});
  }
  return found;
}

}  // namespace heddle::engine
