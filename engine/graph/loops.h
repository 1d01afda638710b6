// ComfyUI's loops, StartLoop and EndLoop (HEDDLE_NODE_LOOP_START, HEDDLE_NODE_LOOP_END): what
// stands between them is not run itself, but copied for each iteration by the start, which asks for
// the copies when it runs. So a graph with loops is bound to one without: the start is given the
// body as a value, and what the body reads from outside as links; the end reads what the start
// makes of the iterations.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace heddle::engine {

// An undeclared input of a start: a record {nodes: {id: {class_type, values, links}}, end: {id,
// values, links}}, where links are [id, output]; and those that hold what the body reads from
// outside, with a number behind.
inline constexpr const char* kLoopBody = "_loop_body";
inline constexpr const char* kLoopOutside = "_loop_outside.";

// What ComfyUI's server says is wrong with loops.
struct LoopFault {
  std::string type;  // "loop_escape"
  std::string text;
  std::vector<NodeIndex> nodes, ends;
};

// Binds the loops of a graph whose nodes may lack types. `is_body`: by node, whether it stands
// within a loop, and so neither runs nor counts as a sink. Where there is a fault the graph stays
// as it is. Linear in the graph for each loop.
std::vector<LoopFault> bind_loops(Graph& graph, std::vector<bool>& is_body);

}  // namespace heddle::engine
