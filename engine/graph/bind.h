// Workflow + Catalog -> Graph: names become types and ports, literals are coerced by ComfyUI's
// rules and checked, defaults are filled in. Pure; any thread.
#pragma once

#include "engine/graph/catalog.h"
#include "engine/graph/graph.h"
#include "engine/graph/prompt_limit.h"
#include "engine/graph/workflow.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

// Values in the place of what the workflow says: of a node (id), of an input. They are taken as
// they are, so the caller has looked at the input's type.
using GivenValues = std::map<std::pair<std::string, std::string>, Value, std::less<>>;

struct Bound {
  // Of the nodes that those sinks need that can run; of all nodes, where one of these may ask for
  // others while it runs: then the others are not in the graph's order.
  Graph graph;
  std::vector<Problem> problems;
  bool can_run = false;  // false: no sink can, and the graph is of no use
  Json answer;           // what ComfyUI's server would answer (prompt_verdict.h)
};

// Reports every problem in one go and never throws for what the workflow says. An unknown input,
// and any fault in a node that no sink needs, are warnings; an unknown class is an error anywhere.
// A faulty node stops the sinks that need it, an unknown class all of them. Which sinks are
// wanted says run_targets.h. An input with a widget that is not given takes the widget's
// default, an optional one too (a CHOICE without a default its first choice); ComfyUI refuses a
// required one. Only inputs without a widget, and FILE and FOLDER ones without a default name, can
// be missing. A literal null for an optional input without a widget is as good as absent. HIDDEN
// inputs stay absent: the run fills them. An undeclared input is kept in Node::extra, links
// included. Linear in the workflow's size; the stack does not grow with its depth. Call it
// qualified, engine::bind(...): an unqualified call with a std argument finds std::bind.
Bound bind(const Workflow& workflow, const Catalog& catalog, const GivenValues& given = {},
           std::uint64_t prompt_limit = kNoPromptLimit);

}  // namespace heddle::engine
