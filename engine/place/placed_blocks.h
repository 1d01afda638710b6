// Where the blocks of a call are, and what passes between them: what time and memory of a placement
// are both estimated with.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/place/estimate_shared.h"
#include "engine/program/session_inputs.h"

namespace heddle::engine {

// Blocks whole: on one device or in layers, for branches that may be side by side. The arguments
// are borrowed.
class PlacedBlocks {
 public:
  PlacedBlocks(const CallCase& call, const CallPlacement& placement)
      : call_(call),
        placement_(placement),
        load_(call.load(placement.devices.front())),
        branches_(call_branches(load_, placement)),
        in_layers_(has(placement.parallel, ParallelMode::layers)) {}

  // Of the first device: rates and counts are the same in every compute type.
  const CallLoad& load() const { return load_; }
  std::uint32_t branch_count() const { return std::uint32_t(branches_.size()); }

  // An index into the placement's devices.
  std::uint32_t slot_of(NodeIndex n, std::uint32_t branch) const {
    return branches_[branch].first + (in_layers_ ? placement_.of_block[n] : 0);
  }
  std::uint32_t device_of(NodeIndex n, std::uint32_t branch) const {
    return placement_.devices[slot_of(n, branch)];
  }
  std::uint32_t device_of(const Source& s, std::uint32_t branch) const {
    return s.node == kGraphInputs ? call_.home : device_of(s.node, branch);
  }
  Phase phase_of(const Source& s) const {
    return s.node == kGraphInputs ? input_phase(call_.graph.inputs[s.port])
                                  : load_.blocks[s.node].phase;
  }
  const BlockWork& work_of(NodeIndex n, std::uint32_t branch) const {
    return call_.load(device_of(n, branch)).work(n, branches_[branch].set);
  }
  // What is made for all steps at once has no items.
  double fraction_of(Phase phase, std::uint32_t branch) const {
    return phase == Phase::precomputed ? 1 : branches_[branch].fraction;
  }
  std::uint64_t part_of(std::uint64_t bytes, Phase phase, std::uint32_t branch) const {
    return std::uint64_t(double(bytes) * fraction_of(phase, branch));
  }
  std::uint64_t bytes_of(const Source& s, std::uint32_t branch) const {
    const std::uint64_t all = s.node == kGraphInputs
                                  ? load_.input_bytes[branches_[branch].set][s.port]
                                  : work_of(s.node, branch).output_bytes[s.port];
    return part_of(all, phase_of(s), branch);
  }

 private:
  const CallCase& call_;
  const CallPlacement& placement_;
  const CallLoad& load_;
  const std::vector<CallBranch> branches_;
  const bool in_layers_;
};

// A T for each copy of a value: of what a block or the caller gives, in a branch, on a device. A
// value has few copies, so those of one value are a short list.
template <class T>
class CopyTable {
 public:
  CopyTable(const Graph& graph, std::uint32_t branches)
      : branches_(branches), inputs_(std::uint32_t(graph.inputs.size())) {
    std::uint32_t count = inputs_;
    first_.reserve(graph.nodes.size());
    for (const Node& node : graph.nodes) {
      first_.push_back(count);
      count += node.type->output_count();
    }
    heads_.assign(std::size_t(count) * branches, kEnd);
  }

  struct Copy {
    std::uint32_t device = 0;
    std::uint32_t next = 0;
    T value{};
  };
  // Valid until the next call.
  struct Found {
    T& value;
    bool is_new;
  };
  Found at(const Source& s, std::uint32_t branch, std::uint32_t device) {
    std::uint32_t& head =
        heads_[(std::size_t(s.node == kGraphInputs ? 0 : first_[s.node]) + s.port) * branches_ +
               branch];
    for (std::uint32_t c = head; c != kEnd; c = copies_[c].next)
      if (copies_[c].device == device) return {copies_[c].value, false};
    copies_.push_back({device, head, T{}});
    head = std::uint32_t(copies_.size() - 1);
    return {copies_.back().value, true};
  }
  const std::vector<Copy>& all() const { return copies_; }

 private:
  static constexpr std::uint32_t kEnd = ~std::uint32_t(0);

  const std::uint32_t branches_;
  const std::uint32_t inputs_;
  std::vector<std::uint32_t> first_;  // by node: the number of its first output
  std::vector<std::uint32_t> heads_;  // by value and branch: an index into copies_
  std::vector<Copy> copies_;
};

}  // namespace heddle::engine
