// The ControlNets of a run by shapes, for infer(): what control_nets.h is going to call. Any
// thread.
#pragma once

#include "control_nets.h"
#include "told_constants.h"

namespace heddle::samplers {

// Entries with the ControlNets and boxes that they have from positive ones.
std::vector<blocks::EntryShapes> with_inherited_of(const std::vector<blocks::EntryShapes>& positive,
                                                   std::vector<blocks::EntryShapes> entries);

// A set of inputs of the denoiser, and the point that it sees.
struct ControlledSet {
  const blocks::EntryShapes* entry = nullptr;
  Value denoiser;
  Shape point;
};
// A hint that an earlier call has encoded.
struct ToldHint {
  Value model, vae;
  std::size_t place = 0;
  Shape pixels;
};
// What the stretches of a run share.
struct SharedControls {
  std::vector<ToldHint> hints;
  ControlModels models;
};
struct ToldControls {
  std::vector<ToldCall> calls;       // of autoencoders and ControlNets
  std::vector<Constants> residuals;  // of each set
};
// Of a stretch of `steps` evaluations that begins at this level; None where an entry lacks
// something.
std::optional<ToldControls> told_controls(const std::vector<ControlledSet>& sets,
                                          const NoiseLevels& levels, double sigma,
                                          std::size_t steps, SharedControls& run);

}  // namespace heddle::samplers
