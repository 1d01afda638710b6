// `layers` over devices that differ: in memory, speed or links. Each takes a range that it has room
// for, the fast ones as much as they can, and slow ones no more than has to be. Pure.
#pragma once

#include <vector>

#include "engine/place/estimate.h"

namespace heddle::engine {

// What activations leave of each device's memory; at least 1.
std::vector<double> bytes_for_weights(const CallCase& call,
                                      const std::vector<std::uint32_t>& devices);

struct LayersWay {
  CallPlacement placement;
  bool streamed = false;  // priced by estimate_streamed(), because weights pass in every step
};

// For two devices, for three, and so on: the fastest of them in the fastest order, and where they
// are short of memory, or faster so, with weights that pass. `devices`: of one compute type; home
// takes part where it is among them.
// REQUIRES: the call's shapes are known; at most kMostStages devices.
std::vector<LayersWay> unequal_layers(const CallCase& call,
                                      const std::vector<std::uint32_t>& devices);

}  // namespace heddle::engine
