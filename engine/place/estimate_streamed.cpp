#include <algorithm>
#include <numeric>
#include <optional>

#include "engine/place/call_steps.h"
#include "engine/place/estimate_shared.h"
#include "engine/program/paging.h"
#include "engine/program/session_inputs.h"
#include "engine/program/session_spec.h"

namespace heddle::engine {

namespace {

// What one device of a placement has to do.
class DeviceCase {
 public:
  // `pinned_available`: bytes of host memory that may be pinned for it.
  DeviceCase(const CallCase& call, const CallPlacement& placement, std::uint32_t i,
             std::uint64_t pinned_available)
      : call_(call),
        placement_(placement),
        i_(i),
        load_(call.load(placement.devices[i])),
        ranks_(placement.ranks()),
        branches_(call_branches(load_, placement)) {
    paging_.pinned_available = pinned_available;
  }

  PagingCase run() {
    const DeviceRates& rates = call_.prices.rates(device());
    paging_.from_host = rates.from_host;
    paging_.from_pinned = rates.from_pinned;
    // What is read in one step only is not worth pinning.
    if (!rates.from_pinned.is_there() || load_.step_count < 2) paging_.pinned_available = 0;
    for (const Phase phase : {Phase::loop_invariant, Phase::precomputed, Phase::per_step})
      for (const NodeIndex n : call_.graph.order)
        if (load_.blocks[n].phase == phase) add_block(n, phase);
    if (ranks_ > 1) add_idle();
    return std::move(paging_);
  }
  double once_seconds() const { return once_seconds_; }

 private:
  std::uint32_t device() const { return placement_.devices[i_]; }

  void add_block(NodeIndex n, Phase phase) {
    std::vector<CallBranch> branches;
    for (const CallBranch& branch : branches_)
      if (slot_of(n, branch) == i_) branches.push_back(branch);
    if (branches.empty()) return;
    const std::vector<BlockLoad::SlotBytes>& slots = load_.blocks[n].slot_bytes;
    const bool in_loop = phase == Phase::per_step;
    auto& weights = in_loop ? paging_.loop : paging_.once;
    std::vector<PagedWeight> read(slots.size());
    std::vector<bool> is_read(slots.size(), false);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      read[slot].bytes = slots[slot].bytes;
      read[slot].pinned_bytes = slots[slot].of_file;
    }
    for (const CallBranch& branch : branches)
      for (const BlockOp& op : load_.work(n, branch.set).ops) {
        const auto position =
            in_loop ? std::uint32_t(paging_.op_seconds.size()) : std::uint32_t(once_ops_);
        for (const std::uint32_t slot : op.weights) {
          if (!is_read[slot]) read[slot].first = position;
          is_read[slot] = true;
          read[slot].last = position;
        }
        const double seconds = op_seconds(call_, device(), op, ParallelMode::none,
                                          phase == Phase::precomputed ? 1 : branch.fraction);
        if (in_loop)
          paging_.op_seconds.push_back(seconds);
        else
          ++once_ops_, once_seconds_ += seconds;
      }
    for (std::size_t slot = 0; slot < slots.size(); ++slot)
      if (is_read[slot]) weights.push_back(read[slot]);
  }

  // An index into the placement's devices.
  std::uint32_t slot_of(NodeIndex n, const CallBranch& branch) const {
    return branch.first +
           (has(placement_.parallel, ParallelMode::layers) ? placement_.of_block[n] : 0);
  }

  // What the others of its group do of a step.
  void add_idle() {
    for (const NodeIndex n : call_.graph.order)
      for (const CallBranch& branch : branches_) {
        const std::uint32_t other = slot_of(n, branch);
        if (other == i_ || other / ranks_ != i_ / ranks_) continue;
        if (load_.blocks[n].phase != Phase::per_step) continue;
        const std::uint32_t d = placement_.devices[other];
        paging_.idle_seconds += work_seconds(call_, d, call_.load(d).work(n, branch.set),
                                             ParallelMode::none, branch.fraction);
      }
  }

  const CallCase& call_;
  const CallPlacement& placement_;
  const std::uint32_t i_;
  const CallLoad& load_;
  const std::uint32_t ranks_;
  const std::vector<CallBranch> branches_;
  PagingCase paging_;
  std::uint32_t once_ops_ = 0;
  double once_seconds_ = 0;
};

std::uint64_t pinned_bytes(const PagingCase& paging, const PagingPlan& paged) {
  const std::vector<bool> pinned = pinned_streamed(paging, paged);
  std::uint64_t bytes = 0;
  for (std::size_t page = 0; page < pinned.size(); ++page)
    if (pinned[page]) bytes += paging.loop[paged.loop[page].weight].pinned_bytes;
  return bytes;
}

// Plans of one placement. Devices that have the same to do get the same one.
class PagingPlans {
 public:
  // `there`: bytes for weights, and `others` besides. Sets what is available. Valid until the next
  // call; nullptr where it cannot run: `least` says how many bytes it wants.
  const PagingPlan* plan(PagingCase& paging, std::uint64_t there, std::uint64_t others,
                         std::uint64_t& least) {
    paging.available = there - std::min(there, others);
    const auto is_same = [&](const Planned& p) { return p.paging == paging; };
    auto found = std::ranges::find_if(planned_, is_same);
    if (found == planned_.end()) {
      Planned next{paging, min_weight_memory(paging), {}};
      if (next.least.bytes() <= paging.available) next.plan = plan_paging(paging, next.least);
      found = planned_.insert(planned_.end(), std::move(next));
    }
    least = found->least.bytes();
    return found->plan ? &*found->plan : nullptr;
  }

 private:
  struct Planned {
    PagingCase paging;
    MinWeightMemory least;
    std::optional<PagingPlan> plan;
  };
  std::vector<Planned> planned_;
};

double sum(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

}  // namespace

bool can_stream(const CallPlacement& placement) { return !has(placement.parallel, kRanksExchange); }

CallEstimate estimate_streamed(const CallCase& call, const CallPlacement& placement) {
  // Copies are held against computing without rest, so it is what they are added to.
  CallEstimate result = estimate_without_rest(call, placement);
  result.load_seconds = 0;
  const std::uint32_t ranks = placement.ranks();
  std::vector<double> longer(placement.devices.size() / ranks, 0);  // by group: seconds more
  double once = 0;                                                  // than without copies
  std::uint64_t pinned_available = call.prices.topology().pinned_bytes;
  PagingPlans plans;
  std::vector<Donor> donors = session_donors(call.prices, session_devices(placement, call.home));
  for (std::uint32_t i = 0; i < placement.devices.size(); ++i) {
    DeviceNeed& need = result.needs[i];
    DeviceCase device(call, placement, i, pinned_available);
    PagingCase paging = device.run();
    std::uint64_t weights = 0;
    for (const auto* list : {&paging.once, &paging.loop})
      for (const PagedWeight& weight : *list) weights += weight.bytes;
    const std::uint64_t others = need.wanted_bytes - std::min(weights, need.wanted_bytes);
    std::uint64_t least = 0;
    const PagingPlan* planned = plans.plan(paging, need.there_bytes, others, least);
    if (planned == nullptr) {
      need.wanted_bytes = others + least;
      continue;
    }
    const PagingPlan& paged = *planned;
    need.wanted_bytes = others + paged.resident_bytes + paged.staging_ring_bytes;
    const double computing = sum(paging.op_seconds) + paging.idle_seconds;
    double step_seconds = paged.step_seconds;
    std::uint64_t lent_bytes = 0;
    const std::vector<std::int32_t> lent = borrow(paging, paged, donors, i);
    for (std::size_t page = 0; page < lent.size(); ++page)
      if (lent[page] >= 0) lent_bytes += paging.loop[paged.loop[page].weight].bytes;
    if (lent_bytes > 0) step_seconds = simulate_paging(paging, paged);
    longer[i / ranks] += std::max(0.0, step_seconds - computing);
    std::uint64_t once_bytes = 0;
    for (const StreamedWeight& page : paged.once) once_bytes += paging.once[page.weight].bytes;
    const double coming = call.prices.transfer_seconds(kHostSide, need.device, once_bytes);
    if (once_bytes > 0) once = std::max(once, coming - device.once_seconds());
    // What passes is brought once, too: to where it lies, pinned or lent.
    const std::uint64_t brought = paged.resident_bytes + lent_bytes + pinned_bytes(paging, paged);
    result.load_seconds = std::max(result.load_seconds,
                                   call.prices.transfer_seconds(kHostSide, need.device, brought));
    result.page_bytes += paged.step_bytes - lent_bytes;
    // Devices with branches or items of their own stream the same weights, of one pinned copy.
    if (ranks > 1 && i < ranks) pinned_available -= pinned_bytes(paging, paged);
  }
  // Layers wait for each other, groups run side by side.
  const CallLoad& load = call.load(placement.devices.front());
  const double more = *std::ranges::max_element(longer);
  result.step_seconds += more;
  result.seconds += once + load.step_count * more;
  return result;
}

}  // namespace heddle::engine
