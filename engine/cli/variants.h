// The runs that one call asks for: the workflow with the options --set and --place applied, once
// for each combination of ranges and lists.
#pragma once

#include <functional>
#include <heddle/engine.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cli/settings.h"
#include "engine/cli/sweep.h"

namespace heddle::cli {

// "Noise.seed" -> {"Noise", "seed"}; the input is what stands behind the last point. Throws
// engine::Error(invalid_argument) when one of them is missing.
struct InputName {
  std::string node, input;
};
InputName split_input_name(std::string_view name);
// The same, but names of inputs may hold dots, too ("resize_type.width"): the longest node that
// the workflow has is meant.
InputName split_input_name(std::string_view name, const Workflow& flow);

class Variants {
 public:
  // Warnings (a configuration file names a node that this workflow does not have) go to `warn`.
  // Throws engine::Error or EngineError for names and values that do not fit the workflow.
  Variants(const Engine& engine, Workflow flow, const Settings& settings,
           const std::function<void(const std::string&)>& warn);

  std::size_t count() const { return sweep_.runs(); }
  Workflow workflow(std::size_t run) const;
  // What makes this run differ from the others: "Noise.seed=3"; empty for a single run.
  std::string label(std::size_t run) const;

 private:
  Workflow flow_;  // with all that is the same in every run
  struct Input {
    std::string name;   // NODE.INPUT
    std::string where;  // it was given
  };
  std::vector<Input> inputs_;  // of each axis of the sweep
  Sweep sweep_;
};

}  // namespace heddle::cli
