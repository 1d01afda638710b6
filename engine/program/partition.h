// Cuts a model's blocks into contiguous ranges, one for each of several devices. Groups are never
// cut apart. A cut is priced by every value that crosses it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/program/workload.h"

namespace heddle::engine {

// A model's groups as a chain, in the order of its graph, with what each cut between them carries
// in a step. A cut is the number of groups before it.
struct GroupChain {
  struct Value {
    std::uint32_t first = 0, last = 0;  // the group that makes it, and the last that reads it
    double bytes = 0;
  };
  std::vector<double> before;  // by cut: bytes of weights before it; the last has all
  std::vector<Value> values;
  std::vector<double> crossing;  // by cut: bytes of all values that are made before and read behind
};
GroupChain group_chain(const Graph& graph, const CallLoad& load);

// By node, what its group has.
std::vector<std::uint32_t> blocks_of_groups(const Graph& graph, const CallLoad& load,
                                            const std::vector<std::uint32_t>& of_group);

// Where each block goes: by node, an index into the devices. Ranges hold weights in proportion to
// `shares` (more than 0); among cuts that are nearly as even, within a twentieth of all weights,
// the one that least crosses. A model with fewer groups than devices leaves the last devices empty.
std::vector<std::uint32_t> partition(const Graph& graph, const CallLoad& load,
                                     const std::vector<double>& fractions);

// Folded: the first device takes the beginning and the end, the second what is between, which pays
// where far blocks feed each other (skip connections). Nothing when there are fewer than three
// groups.
std::optional<std::vector<std::uint32_t>> partition_folded(const Graph& graph, const CallLoad& load,
                                                           double first_fraction);

}  // namespace heddle::engine
