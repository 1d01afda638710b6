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

const engine::Catalog& catalog() {
  static const engine::Catalog made = [] {
    engine::Catalog catalog = test::test_catalog();
    test::list_sample_files(catalog);
    return catalog;
  }();
  return made;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const engine::Workflow& workflow) {
  const engine::Bound bound = engine::bind(workflow, catalog());
  const std::string text = engine::graph_text(bound.graph);
  bool usable = true;
  for (const engine::Problem& problem : bound.problems)
    usable = usable && problem.severity != engine::Problem::Severity::error;
  if (usable) require(bound.graph.order.size() == bound.graph.nodes.size());
  const std::string written = engine::write_workflow(workflow);
  const engine::Workflow again = engine::parse_workflow(written, "written");
  require(engine::write_workflow(again) == written);
  const engine::Bound bound_again = engine::bind(again, catalog());
  require(engine::graph_text(bound_again.graph) == text);
  require(bound_again.problems.size() == bound.problems.size());
  for (const engine::WorkflowNode& node : workflow.nodes) {
    try {
      require(engine::find_node(workflow, node.id) < workflow.nodes.size());
    } catch (const engine::Error&) {
      require(node.id.empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  engine::Workflow workflow;
  try {
    workflow = engine::parse_workflow({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const engine::Error&) {
    return 0;
  }
  check(workflow);  // nothing may be thrown from here on
  return 0;
}
