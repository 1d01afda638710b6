// Which outputs of a workflow can run: as in ComfyUI, those that need nothing faulty, whatever is
// wrong with others. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/dag.h"
#include "engine/graph/graph.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

// What bind() found wrong.
struct Fault {
  enum class Reach { node, workflow };  // workflow: nothing can run
  NodeIndex node = kGraphInputs;        // kGraphInputs: of no node
  Problem::Severity severity = Problem::Severity::error;
  Reach reach = Reach::node;
  std::string message;               // for people
  Json error = {};                   // as ComfyUI's server says it (prompt_errors.h), or null
  std::string lacks = {};            // the class or file that is not there (lacking.h), or empty
  std::vector<NodeIndex> also = {};  // nodes that ComfyUI's server blames for the same
};

struct Verdict {
  std::vector<NodeIndex> sinks;  // of the wanted ones, those that can run
  std::vector<Problem> problems;
  Json answer;
};

// Faults in nodes that no wanted sink needs become warnings, but for those of the whole workflow.
// answer: what ComfyUI's server answers to the prompt, {"error", "node_errors"}: "error" is there
// when nothing can run. Linear in the graph, but for what it tells of failing outputs.
Verdict judge(std::vector<Fault> faults, const Workflow& workflow, const Dag& dag,
              const std::vector<NodeIndex>& sinks);

}  // namespace heddle::engine
