// What can be known of a workflow's models before anything runs: nodes that only read headers are
// executed while planning, and the models in what they give are summed up. No weight is read.
#pragma once

#include <string>
#include <vector>

#include "engine/program/infer.h"
#include "engine/resources/environment.h"

namespace heddle::engine {

struct ModelSummary {
  Source source;      // the output that holds it
  std::string field;  // where in a record: "decoder", "encoders.0.model"; empty: the value itself
  std::string family;
  std::size_t blocks = 0;
  std::uint64_t weight_bytes = 0;  // in the files
};

struct Described {
  Facts facts;              // all that those nodes gave
  std::vector<bool> known;  // by node: it was executed
  std::vector<ModelSummary> models;
};

// Runs the needed nodes flagged HEDDLE_NODE_DESCRIBES whose inputs are literals or outputs of such
// nodes. Throws what they throw.
Described describe_models(const Graph& graph, Environment& environment);

}  // namespace heddle::engine
