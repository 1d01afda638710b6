// Holds infer() and execute() together: runs a workflow, and compares the calls of models and the
// tensors of outputs that were told before with those that were made. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/facade/data.h"

namespace heddle::test {

// Texts, so that a difference shows what differs.
struct Inferences {
  std::map<std::string, std::vector<std::string>> calls;   // by node, in order
  std::map<std::string, std::string> outputs;              // by "node.OUTPUT": its tensors by path
  std::map<std::string, std::uint64_t> host_scratch = {};  // by node, bytes; inferred alone
};

struct Checked {
  Inferences inferred, made;
};

// Both sides of a run in an engine that has not run it before (a cached node opens nothing).
// Outputs known as values, and those of the nodes of test plugins, are left out.
Checked infer_and_run(Engine::Data& engine, const std::string& workflow);

// With Boost checks: everything that was made had been told, and the other way around.
void check_inference(Engine::Data& engine, const std::string& workflow);

}  // namespace heddle::test
