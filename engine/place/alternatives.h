// The ways in which one call of a model could run, each with what it would cost: what `heddle plan`
// prints beside its choice. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/program/call_placement.h"

namespace heddle::engine {

class Model;
struct Topology;

struct DeviceNeed {
  std::uint32_t device = 0;        // of the topology
  std::uint64_t wanted_bytes = 0;  // weights and activations
  std::uint64_t there_bytes = 0;
};

struct Alternative {
  std::string name;         // "resident on cuda:0", "layers over cuda:0, cuda:1"
  double load_seconds = 0;  // bringing the weights from host memory, once
  double seconds = 0;       // all steps, after that
  double step_seconds = 0;  // of these, each step
  std::vector<DeviceNeed> needs;
  bool fits = true;
  bool streamed = false;  // weights pass in every step
  bool automatic = true;  // may be chosen when nobody asks for it
  bool chosen = false;
  bool rounds = false;  // changes how sums are rounded
  std::string note;     // "stay whole: not 2-D"
};

// That its devices lack, all together.
std::uint64_t lacking_bytes(const Alternative& alternative);

// "gpu:0 wants 23.4 GiB of 16.0 GiB", for every device that is short.
std::string shortage_text(const Alternative& alternative, const Topology& topology);

// What of a divided call a device has.
struct CallPart {
  std::uint32_t device = 0;  // of the topology
  std::string what;  // "embed to double.11", "branches 0, 2", "3 of 5 items", "50% of the rows"
  std::uint64_t weight_bytes = 0;  // in the type it computes in
};

// What a call sends from one device to another, all branches together.
struct CallTransfer {
  bool once = false;               // before the first step; else in every step
  std::uint32_t from = 0, to = 0;  // of the topology
  std::uint32_t count = 0;         // transfers
  std::uint64_t bytes = 0;  // 0: the devices share their memory, so that only the order crosses
  std::vector<std::string> values;  // "double.11.img", each once
};

// What the ranks of a group exchange inside of their blocks, in every step.
struct CallExchange {
  std::string op;  // "all_to_all"
  std::uint32_t count = 0, blocks = 0;
  std::uint64_t bytes = 0;  // that cross, of all ranks together
};

// What of a call's weights a device has no room for.
struct CallStream {
  std::uint32_t device = 0;  // of the topology
  std::uint64_t resident_bytes = 0, staging_ring_bytes = 0;
  std::uint64_t step_bytes = 0;      // copied in every step, from host memory
  std::uint64_t donor_bytes = 0;     // or, so many of them, from devices that take no part
  std::uint64_t unpinned_bytes = 0;  // or from host memory that may not be pinned for this device
  std::uint64_t once_bytes = 0;      // copied before the first step
};

// What would have been faster, had it been allowed to change how sums are rounded.
struct FasterRounding {
  std::string name;
  double seconds = 0, step_seconds = 0;
};

// What people are shown of a placed call. Nothing is decided by it.
struct CallReport {
  std::string model;                            // its family
  std::uint32_t step_count = 0, set_count = 0;  // 0: not known
  double step_flops = 0;                        // of all branches, in one step; 0: not known
  std::string reason;                           // "device of the loader", "the fastest that fits"
  std::string why;  // a sentence, of choices among devices that differ; empty: nothing to explain
  std::vector<CallPart> parts;            // by device; empty: one device has all
  std::vector<std::string> whole;         // of `tensor`: weights that no device has a part of,
                                          // by block and slot
  std::vector<Alternative> alternatives;  // what was compared; empty where nothing was
  std::optional<FasterRounding> rounding;
  // As annotate_calls() has found them.
  std::vector<CallTransfer> transfers;
  std::vector<CallExchange> exchanges;
  std::vector<CallStream> streams;
};

// A call of a model, placed: what was decided, and what the decision goes by. Runs carry it out.
struct PlacedCall {
  CallPlacement placement;
  std::shared_ptr<const Model> of;
  bool known = true;  // false: the node could not say whether it calls this model, nor with what
  bool streamed = false;  // placed without room for all weights
  bool fits = true;       // false: the least bad of what was compared
  std::vector<std::uint64_t>
      budgets;  // that it was placed with, by device of the topology; 0: none
  double load_seconds = 0, seconds = 0, step_seconds = 0;  // as estimated; 0 where nothing is known
  // That it was compared with: as if one device loaded all of it.
  double compared_load_seconds = 0;
  bool is_stage = false;  // of PlacedStages: it is called from its one device, and what it makes
                          // stays there
  CallReport report;
};

}  // namespace heddle::engine
