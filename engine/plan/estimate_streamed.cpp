#include <algorithm>
#include <numeric>

#include "engine/plan/call_steps.h"
#include "engine/plan/estimate_shared.h"
#include "engine/plan/paging.h"
#include "engine/plan/session_inputs.h"

namespace heddle::core {

namespace {

// What one device of a placement has to do, at the grain that a load knows: a block takes its time
// evenly over its weights, and reads them in the order of its slots.
class DeviceCase {
 public:
  // `pinned_room`: bytes of host memory that may be pinned for it.
  DeviceCase(const CallCase& call, const CallPlacement& placement, std::uint32_t i,
             std::uint64_t pinned_room)
      : call_(call), placement_(placement), i_(i), load_(call.load(placement.devices[i])) {
    paging_.pinned_room = pinned_room;
  }

  PagingCase run() {
    const SessionSpec::Rates rates = session_rates(call_.prices, device());
    paging_.copy_seconds_per_byte = rates.copy_seconds_per_byte;
    paging_.copy_latency_seconds = rates.copy_latency_seconds;
    paging_.pinned_seconds_per_byte = rates.pinned_seconds_per_byte;
    paging_.pinned_latency_seconds = rates.pinned_latency_seconds;
    // What is read in one step only is not worth pinning.
    if (rates.pinned_seconds_per_byte == 0 || load_.step_count < 2) paging_.pinned_room = 0;
    for (const Rate rate : {Rate::constant, Rate::scheduled, Rate::step})
      for (const NodeIndex n : call_.graph.order)
        if (load_.blocks[n].rate == rate) add_block(n, rate);
    if (placement_.split == Split::layers) add_idle();
    return std::move(paging_);
  }
  double once_seconds() const { return once_seconds_; }

 private:
  std::uint32_t device() const { return placement_.devices[i_]; }

  void add_block(NodeIndex n, Rate rate) {
    std::vector<double> lanes;  // seconds of each
    for (std::uint32_t set = 0; set < load_.set_count; ++set) {
      if (placement_.split != Split::batch && placement_.device_of(n, set) != i_) continue;
      const double share = placement_.split == Split::batch ? placement_.shares[i_] : 1;
      lanes.push_back(share * work_seconds(call_, device(), load_.work(n, set)));
    }
    if (lanes.empty()) return;
    const std::vector<BlockLoad::SlotBytes>& slots = load_.blocks[n].slot_bytes;
    const auto count = std::uint32_t(std::max<std::size_t>(slots.size(), 1));
    const bool in_loop = rate == Rate::step;
    auto& weights = in_loop ? paging_.loop : paging_.once;
    const auto begin = in_loop ? std::uint32_t(paging_.op_seconds.size()) : once_ops_;
    const auto last = std::uint32_t(lanes.size() - 1) * count;
    for (std::uint32_t slot = 0; slot < slots.size(); ++slot)
      weights.push_back(
          {slots[slot].bytes, begin + slot, begin + last + slot, -1, slots[slot].of_file});
    for (const double seconds : lanes)
      for (std::uint32_t op = 0; op < count; ++op) {
        if (in_loop)
          paging_.op_seconds.push_back(seconds / count);
        else
          ++once_ops_, once_seconds_ += seconds / count;
      }
  }

  // What the others do of a step.
  void add_idle() {
    for (const NodeIndex n : call_.graph.order)
      for (std::uint32_t set = 0; set < load_.set_count; ++set) {
        const std::uint32_t other = placement_.device_of(n, set);
        if (other == i_ || load_.blocks[n].rate != Rate::step) continue;
        const std::uint32_t d = placement_.devices[other];
        paging_.idle_seconds += work_seconds(call_, d, call_.load(d).work(n, set));
      }
  }

  const CallCase& call_;
  const CallPlacement& placement_;
  const std::uint32_t i_;
  const CallLoad& load_;
  PagingCase paging_;
  std::uint32_t once_ops_ = 0;
  double once_seconds_ = 0;
};

std::uint64_t pinned_bytes(const PagingCase& paging, const PagingPlan& paged) {
  const std::vector<bool> pinned = pinned_passages(paging, paged);
  std::uint64_t bytes = 0;
  for (std::size_t page = 0; page < pinned.size(); ++page)
    if (pinned[page]) bytes += paging.loop[paged.loop[page].weight].pinned_bytes;
  return bytes;
}

double sum(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

}  // namespace

bool can_stream(const CallPlacement& placement) {
  return placement.split != Split::sequence && placement.split != Split::rows;
}

CallEstimate estimate_streamed(const CallCase& call, const CallPlacement& placement) {
  CallEstimate result = estimate(call, placement);
  result.load_seconds = 0;
  double longer = 0, slowest = 0, once = 0;  // seconds more than without copies
  std::uint64_t pinned_room = call.prices.topology().pinned_bytes;
  for (std::uint32_t i = 0; i < placement.devices.size(); ++i) {
    DeviceNeed& need = result.needs[i];
    DeviceCase device(call, placement, i, pinned_room);
    PagingCase paging = device.run();
    std::uint64_t weights = 0;
    for (const auto* list : {&paging.once, &paging.loop})
      for (const PagedWeight& weight : *list) weights += weight.bytes;
    const std::uint64_t others = need.wanted_bytes - std::min(weights, need.wanted_bytes);
    const LeastRoom least = least_room(paging);
    if (others + least.bytes() > need.there_bytes) {
      need.wanted_bytes = others + least.bytes();
      continue;
    }
    paging.room = need.there_bytes - others;
    const PagingPlan paged = plan_paging(paging);
    need.wanted_bytes = others + paged.resident_bytes + paged.ring_bytes;
    const double computing = sum(paging.op_seconds) + paging.idle_seconds;
    const double more = std::max(0.0, paged.step_seconds - computing);
    longer += more;
    slowest = std::max(slowest, more);
    std::uint64_t once_bytes = 0;
    for (const PlannedPassage& page : paged.once) once_bytes += paging.once[page.weight].bytes;
    const double coming = call.prices.transfer_seconds(kHostSide, need.device, once_bytes);
    if (once_bytes > 0) once = std::max(once, coming - device.once_seconds());
    result.load_seconds =
        std::max(result.load_seconds,
                 call.prices.transfer_seconds(kHostSide, need.device, paged.resident_bytes));
    result.page_bytes += paged.step_bytes;
    // Devices with sets or items of their own stream the same weights, of one pinned copy.
    if (placement.split == Split::layers) pinned_room -= pinned_bytes(paging, paged);
  }
  // Layers wait for each other, sets and items run side by side.
  const CallLoad& load = call.load(placement.devices.front());
  result.seconds += once + load.step_count * (placement.split == Split::layers ? longer : slowest);
  return result;
}

}  // namespace heddle::core
