#include "engine/place/estimate_shared.h"

#include <algorithm>

#include "engine/program/session_inputs.h"

namespace heddle::engine {

namespace {

// Sums are f32 until they are complete (HEDDLE_OP_ALL_REDUCE of what blocks multiply so).
constexpr double kSumBytes = 4;

// Blocks that several devices have a share of each: of its batch items, tokens or rows.
class SharedWork {
 public:
  SharedWork(const CallCase& call, const CallPlacement& placement)
      : call_(call),
        placement_(placement),
        load_(call.load(placement.devices.front())),
        fractions_(placement.fractions) {
    if (placement.parallel != ParallelMode::data) return;
    const std::vector<std::int64_t> items = shard_sizes(load_.batch, fractions_);
    for (std::size_t i = 0; i < fractions_.size(); ++i)
      fractions_[i] = double(items[i]) / double(load_.batch);
  }

  CallEstimate run() {
    CallEstimate result;
    for (const Phase phase : {Phase::loop_invariant, Phase::precomputed, Phase::per_step}) {
      const double seconds =
          placement_.parallel == ParallelMode::data ? side_by_side(phase) : in_step(phase);
      result.seconds += seconds * (phase == load_.main ? load_.repeats() : 1);
      if (phase == load_.main) result.step_seconds = seconds;
    }
    result.transfer_bytes = std::uint64_t(transfer_bytes_);
    for (std::size_t i = 0; i < fractions_.size(); ++i) {
      const DeviceNeed need = need_of(i);
      result.load_seconds =
          std::max(result.load_seconds,
                   call_.prices.transfer_seconds(kHostSide, need.device, weight_bytes(i)));
      result.needs.push_back(need);
    }
    return result;
  }

 private:
  // Batch items do not know of each other: each device works through its own, and the way from home
  // and back is its own, too.
  double side_by_side(Phase phase) const {
    double slowest = 0;
    for (std::size_t i = 0; i < fractions_.size(); ++i) {
      const std::uint32_t d = placement_.devices[i];
      double seconds = 0;
      std::uint64_t moved = 0;
      for (std::uint32_t set = 0; set < load_.set_count; ++set) {
        for (const NodeIndex n : call_.graph.order)
          if (load_.blocks[n].phase == phase)
            seconds += work_seconds(call_, d, call_.load(d).work(n, set), ParallelMode::data,
                                    fractions_[i]);
        moved += outside_bytes(phase, set);
      }
      if (d != call_.home && fractions_[i] > 0)
        seconds += call_.prices.transfer_seconds(call_.home, d,
                                                 std::uint64_t(double(moved) * fractions_[i]));
      slowest = std::max(slowest, seconds);
    }
    return slowest;
  }

  // Ranks of a group wait for each other in every block that they divide; what they do not divide
  // the first one runs alone. It gets the inputs and gives the outputs.
  double in_step(Phase phase) {
    const std::uint32_t first = placement_.devices.front();
    double seconds = 0;
    for (std::uint32_t set = 0; set < load_.set_count; ++set) {
      for (const NodeIndex n : call_.graph.order) {
        if (load_.blocks[n].phase != phase) continue;
        if (!is_sharded(n)) {
          seconds += work_seconds(call_, first, load_.work(n, set));
          continue;
        }
        double slowest = 0;
        for (std::size_t i = 0; i < fractions_.size(); ++i) {
          const std::uint32_t d = placement_.devices[i];
          slowest = std::max(slowest, work_seconds(call_, d, call_.load(d).work(n, set),
                                                   placement_.parallel, fractions_[i]));
        }
        seconds += slowest;
        for (const BlockOp& op : load_.work(n, set).ops)
          seconds +=
              placement_.parallel == ParallelMode::tensor ? sum_seconds(op) : attention_seconds(op);
      }
      if (first != call_.home)
        seconds += call_.prices.transfer_seconds(call_.home, first, outside_bytes(phase, set));
    }
    return seconds;
  }

  bool is_sharded(NodeIndex n) const {
    return placement_.parallel == ParallelMode::tensor ? load_.blocks[n].by_rows
                                                       : load_.blocks[n].by_tokens;
  }

  // The ranks' parts of sums: each receives those of all others, one after another, and adds them
  // up; what the GEMM would have done with the sum is an op of its own.
  double sum_seconds(const BlockOp& op) {
    if (op.sum_elements == 0) return 0;
    const double bytes = kSumBytes * op.sum_elements, others = double(fractions_.size() - 1);
    return slowest_receiver([&](std::uint32_t, std::uint32_t to) {
             return Sent{bytes, call_.prices.rates(to).seconds({OpKind::other, 0, 3 * bytes})};
           }) +
           (others > 0 ? call_.prices.rates(placement_.devices.front())
                             .seconds({OpKind::other, 0, 2 * bytes})
                       : 0);
  }

  // Around an attention tokens and heads change places, and back: q, k and v of a rank's tokens go
  // to those that have the heads, and the result returns. What stays is copied, too. Priced one
  // after another, though blocks send some of it while they compute.
  double attention_seconds(const BlockOp& op) {
    if (op.work.kind != OpKind::attention) return 0;
    const double heads = 1 / double(fractions_.size());
    double copied = 0;
    for (const std::uint32_t d : placement_.devices)
      copied = std::max(copied, call_.prices.rates(d).seconds(
                                    {OpKind::other, 0, 2 * op.work.bytes * heads * heads}));
    return copied + slowest_receiver([&](std::uint32_t from, std::uint32_t to) {
             return Sent{op.work.bytes * fractions_[index_of(from)] * heads,
                         call_.prices.transfer_seconds(from, to, 0)};
           });
  }

  std::size_t index_of(std::uint32_t device) const {
    return std::size_t(std::ranges::find(placement_.devices, device) - placement_.devices.begin());
  }

  // Of what ranks receive from each other, one other at a time.
  struct Sent {
    double bytes = 0;  // in one direction
    double more = 0;   // seconds besides
  };
  template <class F>
  double slowest_receiver(F&& sent) {
    double slowest = 0;
    for (const std::uint32_t to : placement_.devices) {
      double seconds = 0;
      for (const std::uint32_t from : placement_.devices) {
        if (from == to) continue;
        const Sent each = sent(from, to);
        seconds += each.more;
        if (call_.prices.link(from, to).kind == LinkFacts::Kind::same) continue;
        seconds += call_.prices.transfer_seconds(from, to, std::uint64_t(each.bytes));
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

  std::uint64_t weight_bytes(std::size_t i) const {
    const CallLoad& load = call_.load(placement_.devices[i]);
    return placement_.parallel == ParallelMode::data
               ? load.weight_bytes
               : load.rank_bytes(placement_.parallel, fractions_[i], i == 0);
  }

  // Activations as on one device; of tokens and items, the share of them.
  DeviceNeed need_of(std::size_t i) const {
    const std::uint32_t d = placement_.devices[i];
    DeviceNeed need = estimate_alone(call_, d).needs.front();
    const std::uint64_t activations = need.wanted_bytes - call_.load(d).weight_bytes;
    need.wanted_bytes =
        weight_bytes(i) + (placement_.parallel == ParallelMode::tensor
                               ? activations
                               : std::uint64_t(double(activations) * fractions_[i]));
    return need;
  }

  const CallCase& call_;
  const CallPlacement& placement_;
  const CallLoad& load_;  // of the first device
  std::vector<double> fractions_;
  double transfer_bytes_ = 0;  // bytes of one step
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

CallEstimate estimate_shared(const CallCase& call, const CallPlacement& placement) {
  return SharedWork(call, placement).run();
}

}  // namespace heddle::engine
