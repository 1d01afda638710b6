#include "engine/place/estimate_shared.h"

#include <algorithm>

#include "engine/place/call_memory.h"
#include "engine/program/session_inputs.h"

namespace heddle::engine {

namespace {

// Sums are f32 until they are complete (HEDDLE_OP_ALL_REDUCE of what blocks multiply so).
constexpr double kSumBytes = 4;

// Blocks that the ranks of each group divide by tokens or rows. Groups do not know of each other:
// each works through its own branches.
class SharedWork {
 public:
  SharedWork(const CallCase& call, const CallPlacement& placement)
      : call_(call),
        placement_(placement),
        ranks_(placement.ranks()),
        by_rows_(has(placement.parallel, ParallelMode::tensor)),
        load_(call.load(placement.devices.front())),
        branches_(call_branches(load_, placement)),
        fractions_(placement.rank_fractions) {}

  CallEstimate run() {
    CallEstimate result;
    for (const Phase phase : {Phase::loop_invariant, Phase::precomputed, Phase::per_step}) {
      double slowest = 0;
      for (std::uint32_t first = 0; first < placement_.devices.size(); first += ranks_)
        slowest = std::max(slowest, group_seconds(phase, first));
      result.seconds += slowest * (phase == load_.main ? load_.repeats() : 1);
      if (phase == load_.main) result.step_seconds = slowest;
    }
    result.transfer_bytes = std::uint64_t(transfer_bytes_);
    add_needs(result);
    return result;
  }

 private:
  std::uint32_t device_of(std::uint32_t first, std::uint32_t rank) const {
    return placement_.devices[first + rank];
  }

  // Ranks of a group wait for each other in every block that they divide; what they do not divide
  // the first one runs alone. It gets the inputs and gives the outputs.
  double group_seconds(Phase phase, std::uint32_t first) {
    double seconds = 0;
    for (const CallBranch& branch : branches_) {
      if (branch.first != first) continue;
      for (const NodeIndex n : call_.graph.order)
        if (load_.blocks[n].phase == phase) seconds += block_seconds(n, branch);
      if (const std::uint32_t home = call_.home, to = placement_.devices[first]; to != home)
        seconds += call_.prices.transfer_seconds(
            home, to,
            std::uint64_t(double(outside_bytes(phase, branch.set)) * part_of(phase, branch)));
    }
    return seconds;
  }

  // What is made for all steps at once has no items.
  static double part_of(Phase phase, const CallBranch& branch) {
    return phase == Phase::precomputed ? 1 : branch.fraction;
  }

  double block_seconds(NodeIndex n, const CallBranch& branch) {
    const double items = part_of(load_.blocks[n].phase, branch);
    const BlockWork& work = load_.work(n, branch.set);
    if (!is_sharded(n))
      return work_seconds(call_, placement_.devices[branch.first], work, ParallelMode::none, items);
    double slowest = 0;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const std::uint32_t d = device_of(branch.first, rank);
      double seconds = 0;
      for (const BlockOp& op : call_.load(d).work(n, branch.set).ops)
        seconds +=
            by_rows_
                ? op_seconds(call_, d, of_items(op, items), ParallelMode::tensor, fractions_[rank])
                : op_seconds(call_, d, op, ParallelMode::sequence, items * fractions_[rank]);
      slowest = std::max(slowest, seconds);
    }
    for (const BlockOp& op : work.ops)
      slowest += by_rows_ ? sum_seconds(of_items(op, items), branch.first)
                          : attention_seconds(of_items(op, items), branch.first);
    return slowest;
  }

  // What some of the items leave of an op. The streamed slots are not asked for.
  static BlockOp of_items(const BlockOp& op, double items) {
    BlockOp part{op.work, op.weight_bytes, 0, op.sum_elements * items, {}};
    part.work.flops *= items;
    part.work.bytes = op.weight_bytes + (op.work.bytes - op.weight_bytes) * items;
    part.row_bytes = std::min(op.row_bytes, op.weight_bytes) +
                     std::max(0.0, op.row_bytes - op.weight_bytes) * items;
    return part;
  }

  bool is_sharded(NodeIndex n) const {
    return by_rows_ ? load_.blocks[n].by_rows : load_.blocks[n].by_tokens;
  }

  // The ranks' parts of sums: each receives those of all others, one after another, and adds them
  // up; what the GEMM would have done with the sum is an op of its own.
  double sum_seconds(const BlockOp& op, std::uint32_t first) {
    if (op.sum_elements == 0) return 0;
    const double bytes = kSumBytes * op.sum_elements, others = double(fractions_.size() - 1);
    return slowest_receiver(first,
                            [&](std::uint32_t, std::uint32_t to) {
                              return Sent{bytes, call_.prices.rates(device_of(first, to))
                                                     .seconds({OpKind::other, 0, 3 * bytes})};
                            }) +
           (others > 0 ? call_.prices.rates(placement_.devices[first])
                             .seconds({OpKind::other, 0, 2 * bytes})
                       : 0);
  }

  // Around an attention tokens and heads change places, and back: q, k and v of a rank's tokens go
  // to those that have the heads, and the result returns. What stays is copied, too. Priced one
  // after another, though blocks send some of it while they compute.
  double attention_seconds(const BlockOp& op, std::uint32_t first) {
    if (op.work.kind != OpKind::attention) return 0;
    const double heads = 1 / double(fractions_.size());
    double copied = 0;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      copied =
          std::max(copied, call_.prices.rates(device_of(first, rank))
                               .seconds({OpKind::other, 0, 2 * op.work.bytes * heads * heads}));
    return copied + slowest_receiver(first, [&](std::uint32_t from, std::uint32_t to) {
             return Sent{
                 op.work.bytes * fractions_[from] * heads,
                 call_.prices.transfer_seconds(device_of(first, from), device_of(first, to), 0)};
           });
  }

  // Of what ranks receive from each other, one other at a time.
  struct Sent {
    double bytes = 0;  // in one direction
    double more = 0;   // seconds besides
  };
  template <class F>
  double slowest_receiver(std::uint32_t first, F&& sent) {
    double slowest = 0;
    for (std::uint32_t to = 0; to < ranks_; ++to) {
      double seconds = 0;
      for (std::uint32_t from = 0; from < ranks_; ++from) {
        if (from == to) continue;
        const Sent each = sent(from, to);
        const std::uint32_t giver = device_of(first, from), receiver = device_of(first, to);
        seconds += each.more;
        if (call_.prices.link(giver, receiver).kind == LinkFacts::Kind::same) continue;
        seconds += call_.prices.transfer_seconds(giver, receiver, std::uint64_t(each.bytes));
        transfer_bytes_ += each.bytes;
      }
      slowest = std::max(slowest, seconds);
    }
    return slowest;
  }

  // What comes from the caller and goes back to it.
  std::uint64_t outside_bytes(Phase phase, std::uint32_t set) const {
    std::uint64_t bytes = 0;
    for (std::uint32_t in = 0; in < call_.graph.inputs.size(); ++in)
      if (input_phase(call_.graph.inputs[in]) == phase) bytes += load_.input_bytes[set][in];
    if (phase == load_.main)
      for (const GraphOutput& output : call_.graph.outputs)
        if (output.from.node != kGraphInputs)
          bytes += load_.work(output.from.node, set).output_bytes[output.from.port];
    return bytes;
  }

  // Activations as on one device that has the group's branches; of tokens, the share of them. What
  // is made once, as the keys of a text, every rank keeps as a whole.
  void add_needs(CallEstimate& result) const {
    CallPlacement whole;
    whole.parallel = placement_.parallel & (ParallelMode::cfg | ParallelMode::data);
    whole.of_set = placement_.of_set;
    whole.item_fractions = placement_.item_fractions;
    result.needs.resize(placement_.devices.size());
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      whole.devices.clear();
      for (std::size_t first = 0; first < placement_.devices.size(); first += ranks_)
        whole.devices.push_back(placement_.devices[first + rank]);
      const std::vector<CallMemory> of_groups = whole_memory(call_, whole);
      for (std::size_t group = 0; group < whole.devices.size(); ++group) {
        DeviceNeed need = of_groups[group].need;
        const CallLoad& load = call_.load(need.device);
        const std::uint64_t activations =
                                need.wanted_bytes - std::min(need.wanted_bytes, load.weight_bytes),
                            kept = std::min(activations, of_groups[group].kept_bytes),
                            weights = load.rank_bytes(placement_.parallel & kRanksExchange,
                                                      fractions_[rank], rank == 0);
        need.wanted_bytes =
            weights + (by_rows_
                           ? activations
                           : kept + std::uint64_t(double(activations - kept) * fractions_[rank]));
        result.needs[group * ranks_ + rank] = need;
        result.load_seconds = std::max(
            result.load_seconds, call_.prices.transfer_seconds(kHostSide, need.device, weights));
      }
    }
  }

  const CallCase& call_;
  const CallPlacement& placement_;
  const std::uint32_t ranks_;
  const bool by_rows_;
  const CallLoad& load_;  // of the first device
  const std::vector<CallBranch> branches_;
  const std::vector<double>& fractions_;  // by rank
  double transfer_bytes_ = 0;             // bytes of one step
};

}  // namespace

double op_seconds(const CallCase& call, std::uint32_t device, const BlockOp& op, ParallelMode mode,
                  double fraction, double busy) {
  OpWork work = op.work;
  if (mode == ParallelMode::tensor) {
    if (op.row_bytes > 0) work.flops *= fraction;
    work.bytes -= op.row_bytes * (1 - fraction);
  } else {
    work.flops *= fraction;
    work.bytes = op.weight_bytes + (work.bytes - op.weight_bytes) * fraction;
  }
  return call.prices.rates(device).seconds(work, busy);
}

double work_seconds(const CallCase& call, std::uint32_t device, const BlockWork& work,
                    ParallelMode mode, double fraction, double busy) {
  double seconds = 0;
  for (const BlockOp& op : work.ops) seconds += op_seconds(call, device, op, mode, fraction, busy);
  return seconds;
}

std::vector<CallBranch> call_branches(const CallLoad& load, const CallPlacement& placement) {
  std::vector<CallBranch> branches;
  for (const SessionBranch& branch : session_branches(placement, load.set_count, load.batch))
    branches.push_back({branch.set,
                        branch.count == 0 ? 1 : double(branch.count) / double(load.batch),
                        branch.device_slot});
  return branches;
}

CallEstimate estimate_shared(const CallCase& call, const CallPlacement& placement) {
  return SharedWork(call, placement).run();
}

}  // namespace heddle::engine
