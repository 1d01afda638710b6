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
// These change the order of sums, so they are never chosen automatically:
//   sequence  the tokens of each block are divided
//   tensor    the matrices of each block are divided
enum class ParallelMode { none, layers, cfg, data, sequence, tensor };

std::string_view parallel_name(ParallelMode mode);

struct CallPlacement {
  ParallelMode parallel = ParallelMode::none;
  std::vector<std::uint32_t> devices;  // of the topology, without repetition
  std::vector<std::uint32_t>
      of_block;                       // layers: by node of the model's graph, an index into devices
  std::vector<std::uint32_t> of_set;  // cfg: by set, an index into devices
  std::vector<double> fractions;  // data, sequence, tensor: by device, more than 0, adding up to 1

  // The device (an index into devices) of a block for a set.
  std::uint32_t device_of(std::uint32_t block, std::uint32_t set) const {
    return parallel == ParallelMode::layers ? of_block[block]
           : parallel == ParallelMode::cfg  ? of_set[set]
                                            : 0;
  }
};

// How `total` items are divided by fractions: whole items, every one given out, the largest
// remainders first, the lower index among equals. Shares of a few items may come out empty.
std::vector<std::int64_t> shard_sizes(std::int64_t total, const std::vector<double>& fractions);

}  // namespace heddle::engine
