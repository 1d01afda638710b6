// The ways in which one call of a model could run, each with what it would cost: what `heddle plan`
// prints beside its choice. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/plan/call_placement.h"

namespace heddle::core {

class Model;

struct DeviceNeed {
  std::uint32_t device = 0;        // of the topology
  std::uint64_t wanted_bytes = 0;  // weights and activations
  std::uint64_t there_bytes = 0;
};

struct Alternative {
  std::string name;         // "resident on cuda:0", "layers over cuda:0, cuda:1"
  double load_seconds = 0;  // bringing the weights from host memory, once
  double seconds = 0;       // all steps, after that
  std::vector<DeviceNeed> needs;
  bool fits = true;
  bool automatic = true;  // may be chosen when nobody asks for it
  bool chosen = false;
  std::string note;  // "streaming is not executed yet"
};

// A call of a model, placed.
struct PlacedCall {
  CallPlacement placement;
  std::shared_ptr<const Model> of;
  bool told = true;   // false: the node could not say whether it calls this model, nor with what
  std::string model;  // its family
  std::uint32_t step_count = 0, set_count = 0;  // 0: not known
  std::string reason;                           // "device of the loader", "the fastest that fits"
  std::vector<std::string> ranges;              // layers: "gpu:0 embed to double.11", by device
  double load_seconds = 0, seconds = 0;         // as estimated; 0 where nothing is known
  bool fits = true;                             // false: the least bad of what was compared
  std::vector<Alternative> alternatives;        // what was compared; empty where nothing was
};

}  // namespace heddle::core
