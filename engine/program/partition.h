// Cuts a model's blocks into contiguous ranges, one for each of several devices. Groups are never
// cut apart. A cut is priced by every value that crosses it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/program/workload.h"

namespace heddle::engine {

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
