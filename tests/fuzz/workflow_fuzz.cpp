// libFuzzer target: any bytes are a workflow that is read and bound to the test catalog. Faults are
// reported as errors and problems; what can be read is written, reads back the same, and binds
// alike.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. -Isdk/include
//   workflow_fuzz.cpp <floors 0, 1 and 3>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/graph/bind.h"
#include "engine/graph/graph_text.h"
#include "tests/support/test_nodes.h"

namespace {

using namespace heddle;

const core::Catalog& catalog() {
  static const core::Catalog made = [] {
    core::Catalog catalog = test::test_catalog();
    test::list_sample_files(catalog);
    return catalog;
  }();
  return made;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const core::Workflow& workflow) {
  const core::Bound bound = core::bind(workflow, catalog());
  const std::string text = core::graph_text(bound.graph);
  bool usable = true;
  for (const core::Problem& problem : bound.problems)
    usable = usable && problem.severity != core::Problem::Severity::error;
  if (usable) require(bound.graph.order.size() == bound.graph.nodes.size());
  const std::string written = core::write_workflow(workflow);
  const core::Workflow again = core::parse_workflow(written, "written");
  require(core::write_workflow(again) == written);
  const core::Bound bound_again = core::bind(again, catalog());
  require(core::graph_text(bound_again.graph) == text);
  require(bound_again.problems.size() == bound.problems.size());
  for (const core::WorkflowNode& node : workflow.nodes) {
    try {
      require(core::find_node(workflow, node.id) < workflow.nodes.size());
    } catch (const core::Error&) {
      require(node.id.empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  core::Workflow workflow;
  try {
    workflow = core::parse_workflow({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const core::Error&) {
    return 0;
  }
  check(workflow);  // nothing may be thrown from here on
  return 0;
}
