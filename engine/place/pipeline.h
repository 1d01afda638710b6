// Contiguous ranges of a chain of groups over devices that differ: which of them, in which order,
// and where to cut, so that a chain that runs one range after the other is done soonest. Memory
// limits each range, speed prices it, links price the cuts. Exact for these prices; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/program/cost_model.h"

namespace heddle::engine {

inline constexpr std::size_t kMostStages =
    5;  // devices to choose from: all their subsets are tried

// A cut is the number of groups before it, so there is one more of them than groups.
struct PipelineCase {
  struct Stage {
    double bytes = 0;             // of weights that it has room for
    std::vector<double> seconds;  // by cut: of all groups before it
    CopyRate from_home, to_home;  // of what begins and ends a step
  };
  std::vector<Stage> stages;               // at most kMostStages
  std::vector<CopyRate> links;             // from * stages + to
  std::uint32_t needed = 0;                // a bit for each stage that has to take part
  std::vector<double> weights;             // by cut: bytes of all groups before it
  std::vector<double> crossing;            // by cut: bytes that cross it each time
  double first_bytes = 0, last_bytes = 0;  // that come from home, and go back there, each time
  double times = 1;                        // that the chain runs; `seconds` are of all of them
};

struct Pipeline {
  double seconds = 0;
  std::vector<std::uint32_t> stages;  // in the order of the chain
  std::vector<std::uint32_t> ends;    // by the same: the cut behind its range, which is not empty
};

// By the number of stages that take part, less one: the fastest; nothing where none has room.
std::vector<std::optional<Pipeline>> fastest_pipelines(const PipelineCase& pipeline);

}  // namespace heddle::engine
