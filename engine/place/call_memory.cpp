#include "engine/place/call_memory.h"

#include <algorithm>

#include "engine/place/placed_blocks.h"

namespace heddle::engine {

namespace {

// In positions of the graph's order; one behind the last is the end of the call.
struct Life {
  std::uint32_t first = 0, last = 0;
  std::uint64_t bytes = 0;
  bool is_kept = false;  // for all steps
};

class Memory {
 public:
  Memory(const CallCase& call, const CallPlacement& placement)
      : call_(call),
        placement_(placement),
        blocks_(call, placement),
        end_(std::uint32_t(call.graph.order.size())),
        lives_(call.graph, blocks_.branch_count()),
        slot_(call.prices.topology().devices.size(), kNone) {
    for (std::uint32_t i = 0; i < placement.devices.size(); ++i)
      if (slot_[placement.devices[i]] == kNone) slot_[placement.devices[i]] = i;
  }

  std::vector<CallMemory> run() {
    add_values();
    const std::vector<std::uint64_t> peaks = activations(), weights = weight_bytes(),
                                     kept = kept_bytes();
    std::vector<CallMemory> result;
    for (const std::uint32_t d : placement_.devices)
      result.push_back({{d, weights[slot_[d]] + peaks[slot_[d]],
                         usable_bytes(call_.prices.topology().devices[d])},
                        weights[slot_[d]],
                        kept[slot_[d]]});
    return result;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t(0);

  // Values live from the block that makes them, or the first that reads them on another device, to
  // the last that reads them there; what was made before the steps lives throughout.
  void touch(const Source& s, std::uint32_t branch, std::uint32_t device, std::uint32_t first,
             std::uint32_t last) {
    const bool lasting = blocks_.phase_of(s) != blocks_.load().main;
    const auto [life, is_new] = lives_.at(s, branch, device);
    if (is_new)
      life = {lasting ? 0 : first, lasting ? end_ : last, blocks_.bytes_of(s, branch), lasting};
    else if (!lasting)
      life.last = std::max(life.last, last);
  }

  void add_values() {
    const Graph& graph = call_.graph;
    std::vector<std::uint32_t> position(graph.nodes.size(), 0);
    for (std::uint32_t p = 0; p < end_; ++p) position[graph.order[p]] = p;
    const auto made = [&](const Source& s) {
      return s.node == kGraphInputs ? 0 : position[s.node];
    };
    const Phase main = blocks_.load().main;
    for (std::uint32_t p = 0; p < end_; ++p) {
      const NodeIndex n = graph.order[p];
      const Node& node = graph.nodes[n];
      for (std::uint32_t branch = 0; branch < blocks_.branch_count(); ++branch) {
        const std::uint32_t here = blocks_.device_of(n, branch);
        for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
          const auto* link = std::get_if<Source>(&node.inputs[i]);
          if (link == nullptr || (node.type->input(i).flags & HEDDLE_PORT_SHAPE) != 0) continue;
          if (blocks_.phase_of(*link) != main && blocks_.load().blocks[n].phase != main)
            continue;  // gone before the steps begin
          const std::uint32_t from = blocks_.device_of(*link, branch);
          touch(*link, branch, from, made(*link), p);
          if (from != here) touch(*link, branch, here, made(*link), p);
        }
      }
    }
    for (const GraphOutput& output : graph.outputs)
      for (std::uint32_t branch = 0; branch < blocks_.branch_count(); ++branch)
        touch(output.from, branch, blocks_.device_of(output.from, branch), made(output.from), end_);
  }

  // By index into the placement's devices: the most that is alive at one time.
  std::vector<std::uint64_t> activations() const {
    const std::size_t devices = placement_.devices.size(), row = end_ + 2;
    std::vector<std::int64_t> changes(devices * row, 0);
    for (const auto& copy : lives_.all()) {
      const std::uint32_t slot = slot_[copy.device];
      if (slot == kNone) continue;  // at home, where none of the blocks run
      changes[slot * row + copy.value.first] += std::int64_t(copy.value.bytes);
      changes[slot * row + copy.value.last + 1] -= std::int64_t(copy.value.bytes);
    }
    std::vector<std::int64_t> live(devices, 0), peak(devices, 0);
    std::vector<std::uint64_t> inside(devices);
    for (std::uint32_t p = 0; p <= end_; ++p) {
      std::ranges::fill(inside, 0);
      for (std::uint32_t branch = 0; p < end_ && branch < blocks_.branch_count(); ++branch) {
        const NodeIndex n = call_.graph.order[p];
        const BlockWork& work = blocks_.work_of(n, branch);
        std::uint64_t outputs = 0;
        for (const std::uint64_t bytes : work.output_bytes) outputs += bytes;
        std::uint64_t& most = inside[slot_[blocks_.device_of(n, branch)]];
        most = std::max(most, blocks_.part_of(work.peak_bytes - std::min(work.peak_bytes, outputs),
                                              blocks_.load().blocks[n].phase, branch));
      }
      for (std::size_t i = 0; i < devices; ++i) {
        live[i] += changes[i * row + p];
        peak[i] = std::max(peak[i], live[i] + std::int64_t(inside[i]));
      }
    }
    return {peak.begin(), peak.end()};
  }

  // By index into the placement's devices.
  std::vector<std::uint64_t> kept_bytes() const {
    std::vector<std::uint64_t> bytes(placement_.devices.size(), 0);
    for (const auto& copy : lives_.all())
      if (const std::uint32_t slot = slot_[copy.device]; slot != kNone && copy.value.is_kept)
        bytes[slot] += copy.value.bytes;
    return bytes;
  }

  std::vector<std::uint64_t> weight_bytes() const {
    std::vector<std::uint64_t> bytes(placement_.devices.size(), 0);
    std::vector<NodeIndex> counted(bytes.size(), kGraphInputs);  // the last node that was
    for (const NodeIndex n : call_.graph.order)
      for (std::uint32_t branch = 0; branch < blocks_.branch_count(); ++branch) {
        const std::uint32_t device = blocks_.device_of(n, branch), i = slot_[device];
        if (counted[i] == n) continue;
        counted[i] = n;
        bytes[i] += call_.load(device).blocks[n].weight_bytes;
      }
    return bytes;
  }

  const CallCase& call_;
  const CallPlacement& placement_;
  const PlacedBlocks blocks_;
  const std::uint32_t end_;
  CopyTable<Life> lives_;
  std::vector<std::uint32_t> slot_;  // by device: its first index in the placement
};

}  // namespace

std::vector<CallMemory> whole_memory(const CallCase& call, const CallPlacement& placement) {
  return Memory(call, placement).run();
}

}  // namespace heddle::engine
