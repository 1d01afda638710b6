// StartOptions::inputs on their way into a run: numbers and texts become literals of the workflow,
// tensors become values.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "engine/graph/bind.h"
#include "engine/tensor/dlpack.h"
#include "heddle/engine.hpp"

namespace heddle {

// The dot that divides NODE.INPUT; npos where there is none. Both may hold dots ("v1.5 model",
// "resize_type.width"): the longest NODE that is there is meant, and without one what stands before
// the last dot.
std::size_t input_dot(const engine::Workflow& workflow, std::string_view name);

struct TakenTensor {
  engine::ManagedTensor bare;                           // or
  std::map<std::string, engine::ManagedTensor> fields;  // of a record
};
using TakenInputs = std::map<std::string, std::variant<engine::Json, TakenTensor>>;

// Owns every tensor from here on: they go back when the last of these and of what was made of them
// has gone. A null pointer is found out later.
TakenInputs take_inputs(Inputs inputs);

// The workflow with the literals set, and "given" among the `_meta` of nodes that tensors go into.
// Throws for a name that is none, of the node or of its input.
std::shared_ptr<const Workflow::Data> with_inputs(const std::shared_ptr<const Workflow::Data>& flow,
                                                  const TakenInputs& inputs);

// The tensors. Throws for such names, too; for an input that takes no tensor; and for what is not a
// tensor of ours.
engine::GivenValues values_of(const Workflow::Data& flow, const TakenInputs& inputs);

// The outputs that NODE.OUTPUT name. Throws invalid_argument or not_found.
std::vector<engine::Source> find_outputs(const engine::Graph& graph,
                                         const engine::Workflow& workflow,
                                         const std::vector<std::string>& names);

}  // namespace heddle
