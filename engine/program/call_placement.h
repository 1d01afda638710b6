// On which devices the blocks of one call of a model run, and how the work is divided among them. A
// value, made by placement, carried out by a session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::engine {

// none: everything on one device. These give the same bytes as none:
//   layers    contiguous ranges of blocks on each device
//   cfg       the sets of a step (guidance has two) side by side
//   data      items of the batch side by side
// These change the order of sums, so they are never chosen where bytes have to stay:
//   sequence  the tokens of each block are divided
//   tensor    the matrices of each block are divided
// cfg and data go together, and each of them with one of the other three: what they give to one
// device alone they give to a group of devices, which divides it by that.
enum class ParallelMode : std::uint32_t {
  none = 0,
  layers = 1,
  cfg = 2,
  data = 4,
  sequence = 8,
  tensor = 16
};

constexpr ParallelMode operator|(ParallelMode a, ParallelMode b) {
  return ParallelMode(std::uint32_t(a) | std::uint32_t(b));
}
constexpr ParallelMode operator&(ParallelMode a, ParallelMode b) {
  return ParallelMode(std::uint32_t(a) & std::uint32_t(b));
}
// Whether it is one of them.
constexpr bool has(ParallelMode mode, ParallelMode any) {
  return (mode & any) != ParallelMode::none;
}
// What a group does with its blocks, and which of them change the order of sums.
inline constexpr ParallelMode kRanksExchange = ParallelMode::sequence | ParallelMode::tensor;
inline constexpr ParallelMode kOverRanks = ParallelMode::layers | kRanksExchange;

// Of the ways in which a call may be placed when nobody names one: those that give the same bytes,
// or also those that change how sums are rounded.
enum class Fidelity { exact, rounding };

// "cfg+sequence"
std::string parallel_name(ParallelMode mode);

struct CallPlacement {
  ParallelMode parallel = ParallelMode::none;
  std::vector<std::uint32_t> devices;   // of the topology, without repetition: group after group
  std::vector<std::uint32_t> of_block;  // layers: by node of the model's graph, a rank of a group
  std::vector<std::uint32_t> of_set;    // cfg: by set, which of the shares it belongs to
  // Each more than 0, adding up to 1. data: of the items, by share. sequence, tensor: by rank.
  std::vector<double> item_fractions;
  std::vector<double> rank_fractions = {};

  std::uint32_t item_shares() const {
    return has(parallel, ParallelMode::data) ? std::uint32_t(item_fractions.size()) : 1;
  }
  // Devices of each group.
  std::uint32_t ranks() const;
  // The first device (an index into devices) of the group that has a share of the items of a set.
  // The groups of one share of sets stand one behind the other.
  std::uint32_t first_device_of(std::uint32_t set, std::uint32_t item_share) const;
};

// How `total` items are divided by fractions: whole items, every one given out, the largest
// remainders first, the lower index among equals. Shares of a few items may come out empty.
std::vector<std::int64_t> shard_sizes(std::int64_t total, const std::vector<double>& fractions);

}  // namespace heddle::engine
