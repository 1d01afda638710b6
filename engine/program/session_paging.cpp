#include "engine/program/session_paging.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/op_work.h"
#include "engine/program/paging.h"
#include "engine/program/weight_slot.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

using Kind = SessionAction::Kind;

// What the device slots of a session share, as far as it is left.
struct Shared {
  std::vector<Donor> donors;
  std::uint64_t pinned_available = 0;                                    // of host memory
  std::set<std::tuple<NodeIndex, std::uint32_t, std::uint32_t>> pinned;  // node, slot, rank
  std::vector<double> op_seconds;  // by op; below 0: nobody has asked yet
};

// One device slot of a session.
class DeviceSlotPager {
 public:
  DeviceSlotPager(const Graph& graph, const SessionSpec& spec, SessionPlan& plan,
                  std::uint32_t device_slot, Shared& shared)
      : graph_(graph),
        spec_(spec),
        plan_(plan),
        device_slot_(device_slot),
        needs_(plan.needs[device_slot]),
        shared_(shared) {}

  void run() {
    count_others();
    read_ops();
    const std::uint64_t others = plan_.need_bytes(device_slot_);
    const std::uint64_t budget = spec_.device_slots[device_slot_].budget;
    const MinWeightMemory least = min_weight_memory(paging_);
    needs_.small_weights = least.small_bytes;
    needs_.min_staging_ring = least.staging_ring_bytes;
    if (others + least.bytes() > budget) refuse(least);
    paging_.available = budget - others;
    const PagingPlan paged = plan_paging(paging_);
    needs_.resident_weights = paged.resident_bytes;
    needs_.step_seconds = paged.step_seconds;
    needs_.step_page_bytes = paged.step_bytes;
    if (!paged.streams()) return;
    plan_.arenas[device_slot_].staging_ring_bytes = paged.staging_ring_bytes;
    borrow_from_donors(paged);
    pin(paged);
    for (const StreamedWeight& streamed : paged.once) {
      add_page(once_[streamed.weight], streamed, paging_.once[streamed.weight].first,
               once_launches_);
      needs_.once_page_bytes += paging_.once[streamed.weight].bytes;
    }
    for (const StreamedWeight& streamed : paged.loop)
      add_page(loop_[streamed.weight], streamed, paging_.loop[streamed.weight].first,
               loop_launches_);
    insert();
  }

 private:
  // A launch on this device slot: its phase, and where it stands in it.
  struct Launch {
    int phase = 0;
    std::size_t at = 0;
  };

  // Of one group that has its blocks in layers: while one works the others rest.
  bool takes_turns_with(std::uint32_t other) const {
    if (!has(spec_.placement.parallel, ParallelMode::layers)) return false;
    const std::uint32_t ranks = spec_.placement.ranks(),
                        count = std::uint32_t(spec_.placement.devices.size());
    return device_slot_ < count && other < count && device_slot_ / ranks == other / ranks;
  }

  void count_others() {
    for (const SessionStorage& s : plan_.storages)
      if (s.device_slot == device_slot_ && (s.kind == SessionStorage::Kind::loop_invariant ||
                                            s.kind == SessionStorage::Kind::precomputed))
        needs_.inputs += padded_page_bytes(s.bytes);
    if (device_slot_ != spec_.home) return;
    for (const SessionPlan::Output& output : plan_.outputs)
      needs_.outputs += padded_page_bytes(dense_bytes(output.value.info));
  }

  // Other device slots ask for the same.
  double seconds_of(std::uint32_t op) const {
    const PlannedOp& planned = plan_.ops[op];
    double& seconds = shared_.op_seconds[op];
    if (seconds < 0)
      seconds = spec_.device_slots[planned.device_slot].rates.seconds(
          op_work(planned.op, spec_.is_scaled_fp8));
    return seconds;
  }

  void read_ops() {
    std::map<std::int32_t, std::size_t> known;  // storages; where they stand in once_ or loop_
    for (int phase = 0; phase < 3; ++phase)
      for (std::size_t at = 0; at < plan_.phases[phase].size(); ++at) {
        const SessionAction& action = plan_.phases[phase][at];
        if (action.kind != Kind::launch) continue;
        const PlannedOp& op = plan_.ops[action.index];
        const bool in_loop = phase == 2;
        if (op.device_slot != device_slot_) {
          if (in_loop && takes_turns_with(op.device_slot))
            paging_.idle_seconds += seconds_of(action.index);
          continue;
        }
        auto& launches = in_loop ? loop_launches_ : once_launches_;
        auto& storages = in_loop ? loop_ : once_;
        auto& weights = in_loop ? paging_.loop : paging_.once;
        const auto position = std::uint32_t(launches.size());
        launches.push_back({phase, at});
        if (in_loop) paging_.op_seconds.push_back(seconds_of(action.index));
        for (const Operand& operand : op.op.in) {
          if (operand.storage < 0) continue;
          SessionStorage& s = plan_.storages[operand.storage];
          if (s.kind != SessionStorage::Kind::weight) continue;
          const auto [found, is_new] = known.try_emplace(operand.storage, storages.size());
          if (is_new) {
            s.bytes = bytes_of(s, operand.info);
            storages.push_back(operand.storage);
            weights.push_back({s.bytes, position, position});
            if (in_loop) mark_pinned(s, weights.back());
          }
          weights[found->second].last = position;
        }
      }
    for (std::size_t i = 0; i < plan_.storages.size(); ++i) {  // traced, and read by no op
      const SessionStorage& s = plan_.storages[i];
      if (s.device_slot != device_slot_ || s.kind != SessionStorage::Kind::weight) continue;
      if (!known.contains(std::int32_t(i))) needs_.inputs += padded_page_bytes(bytes_of(s, {}));
    }
    paging_.from_host = spec_.device_slots[device_slot_].rates.from_host;
    paging_.from_pinned = spec_.device_slots[device_slot_].rates.from_pinned;
    paging_.pinned_available = pins() ? shared_.pinned_available : 0;
  }

  // What is read in one step only is not worth pinning.
  bool pins() const {
    return spec_.device_slots[device_slot_].rates.from_pinned.is_there() && spec_.step_count > 1;
  }
  void mark_pinned(const SessionStorage& s, PagedWeight& weight) const {
    if (!pins()) return;
    weight.pinned_bytes =
        spec_.file_bytes ? spec_.file_bytes(s.node, s.slot, s.rank) : weight.bytes;
    weight.is_pinned = shared_.pinned.contains({s.node, s.slot, s.rank});
  }
  void pin(const PagingPlan& paged) {
    if (!pins()) return;
    const std::vector<bool> pinned = pinned_streamed(paging_, paged);
    for (std::size_t page = 0; page < pinned.size(); ++page) {
      const std::uint32_t w = paged.loop[page].weight;
      const PagedWeight& weight = paging_.loop[w];
      const SessionStorage& s = plan_.storages[loop_[w]];
      if (!pinned[page] && weight.copy_seconds < 0) needs_.unpinned_page_bytes += weight.bytes;
      if (pinned[page] && shared_.pinned.insert({s.node, s.slot, s.rank}).second)
        shared_.pinned_available -= weight.pinned_bytes;
    }
  }

  std::uint64_t bytes_of(const SessionStorage& s, const heddle_tensor_info& read) const {
    if (spec_.weight_bytes) return spec_.weight_bytes(s.device_slot, s.node, s.slot, s.rank);
    const auto info =
        spec_.weight ? spec_.weight(s.device_slot, s.node, s.slot, s.rank) : std::nullopt;
    return dense_bytes(info ? *info : read);
  }

  void borrow_from_donors(const PagingPlan& paged) {
    const std::vector<std::int32_t> lent = borrow(paging_, paged, shared_.donors, device_slot_);
    for (std::size_t page = 0; page < lent.size(); ++page) {
      if (lent[page] < 0) continue;
      const std::uint32_t w = paged.loop[page].weight;
      donors_[loop_[w]] = lent[page];
      needs_.donor_page_bytes += paging_.loop[w].bytes;
    }
    if (needs_.donor_page_bytes > 0) needs_.step_seconds = simulate_paging(paging_, paged);
  }

  // `launches`: of the weight's part of the session; `first`: of them, the first that reads it.
  void add_page(std::int32_t storage, const StreamedWeight& streamed, std::uint32_t first,
                const std::vector<Launch>& launches) {
    SessionStorage& s = plan_.storages[storage];
    s.kind = SessionStorage::Kind::page;
    s.offset = streamed.offset;
    const auto index = std::uint32_t(plan_.pages.size());
    const auto donor = donors_.find(storage);
    plan_.pages.push_back(
        {storage, device_slot_, s.bytes, donor == donors_.end() ? -1 : donor->second});
    const Launch& reader = launches[first];
    awaits_[reader.phase][reader.at].push_back({Kind::await_page, index});
    const bool in_loop = &launches == &loop_launches_;
    if (in_loop && streamed.behind < 0) {
      const Launch& behind = launches[std::size_t(streamed.behind + std::int64_t(launches.size()))];
      comings_[2][behind.at].push_back({Kind::page_in, index, true});
      plan_.first_pages.push_back(index);
    } else if (streamed.behind < 0) {
      first_.push_back({Kind::page_in, index});
    } else {
      const Launch& behind = launches[std::size_t(streamed.behind)];
      comings_[behind.phase][behind.at].push_back({Kind::page_in, index});
    }
  }

  void insert() {
    for (int phase = 0; phase < 3; ++phase) {
      std::vector<SessionAction> actions;
      if (phase == 0) actions = std::move(first_);
      for (std::size_t at = 0; at < plan_.phases[phase].size(); ++at) {
        if (const auto found = awaits_[phase].find(at); found != awaits_[phase].end())
          actions.insert(actions.end(), found->second.begin(), found->second.end());
        actions.push_back(plan_.phases[phase][at]);
        const auto found = comings_[phase].find(at);
        if (found == comings_[phase].end()) continue;
        // This step's before the next one's.
        std::stable_partition(found->second.begin(), found->second.end(),
                              [](const SessionAction& a) { return !a.for_next_step; });
        actions.insert(actions.end(), found->second.begin(), found->second.end());
      }
      plan_.phases[phase] = std::move(actions);
    }
  }

  [[noreturn]] void refuse(const MinWeightMemory& least) const {
    const auto largest = std::ranges::max_element(plan_.storages, {}, [&](const SessionStorage& s) {
      return s.device_slot == device_slot_ && s.kind == SessionStorage::Kind::weight ? s.bytes : 0;
    });
    const SessionPlan::Arenas& arenas = plan_.arenas[device_slot_];
    std::vector<std::string> parts;
    const auto part = [&](std::uint64_t bytes, std::string what) {
      if (bytes > 0) parts.push_back(cat(format_bytes(bytes), " ", what));
    };
    part(arenas.persistent_bytes + arenas.scratch_bytes, "for activations");
    part(needs_.inputs, "for inputs");
    part(needs_.outputs, "for outputs");
    part(least.small_bytes, "for small weights");
    if (least.staging_ring_bytes > 0) {
      const Node& node = graph_.nodes[largest->node];
      part(least.staging_ring_bytes,
           cat("for a staging ring that the others pass through, the largest being ", node.id, ".",
               weight_name(node, largest->slot), " with ", format_bytes(largest->bytes)));
    }
    const std::uint64_t bytes = plan_.min_bytes(device_slot_);
    const std::uint64_t budget = spec_.device_slots[device_slot_].budget;
    throw Error(
        Code::out_of_memory,
        cat("out of memory on ", spec_.device_slots[device_slot_].name, ": the call may use ",
            format_bytes(budget), " (", budget, " bytes) and needs at least ", format_bytes(bytes),
            " (", bytes, " bytes): ", join(parts, ", "),
            ". Give the device a larger budget, use more devices, or a smaller picture or batch."));
  }

  const Graph& graph_;
  const SessionSpec& spec_;
  SessionPlan& plan_;
  const std::uint32_t device_slot_;
  SessionPlan::Needs& needs_;
  Shared& shared_;
  std::map<std::int32_t, std::int32_t> donors_;  // by storage
  PagingCase paging_;
  std::vector<std::int32_t> once_, loop_;  // storages of paging_.once and loop
  std::vector<Launch> once_launches_, loop_launches_;
  std::vector<SessionAction> first_;  // page-ins at the very beginning
  std::array<std::map<std::size_t, std::vector<SessionAction>>, 3> awaits_,
      comings_;  // by action of a phase: before it, behind it
};

}  // namespace

void page_session(const Graph& graph, const SessionSpec& spec, SessionPlan& plan) {
  plan.needs.assign(spec.device_slots.size(), {});
  Shared shared{spec.donors, spec.pinned_bytes, {}, std::vector<double>(plan.ops.size(), -1)};
  for (std::uint32_t device_slot = 0; device_slot < spec.device_slots.size(); ++device_slot)
    if (spec.device_slots[device_slot].budget != kNoLimit)
      DeviceSlotPager(graph, spec, plan, device_slot, shared).run();
}

}  // namespace heddle::engine
