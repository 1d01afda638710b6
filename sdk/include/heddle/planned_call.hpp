// What a plan tells of a call of a model. A value.
#pragma once

#include <string>

namespace heddle {

// A call of a model, as it is placed. 0: not known.
struct PlannedCall {
  std::string node, model;  // node id; the model's family
  std::string parallel;     // "none", "layers", ...
  double seconds = 0;       // all steps, when the weights are there
  double step_seconds = 0;  // of these, each step
  double load_seconds = 0;  // of bringing the weights, once
  double step_flops = 0;    // of all branches
};

}  // namespace heddle
