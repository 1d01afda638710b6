// What a call of a node in Python costs: a row of nodes, each of which reads what the one before it
// has made, is run often; times are of one node, the fastest run's, in microseconds. Pictures are
// tensors of torch or NumPy, whichever the Python has that the one argument names.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "engine/base/text.h"
#include "heddle/engine.hpp"

namespace {

using heddle::engine::cat;
constexpr int kNodes = 40, kRuns = 10;

double measure(heddle::Engine& engine, const std::string& flow) {
  double best = 1e9;
  const heddle::Workflow workflow = engine.parse(flow);
  for (int i = 0; i < kRuns; ++i) {
    heddle::StartOptions start;
    start.anew = true;  // nothing comes from the cache
    const auto begin = std::chrono::steady_clock::now();
    engine.start(workflow, std::move(start)).wait();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / kNodes);
  }
  return best;
}

std::string node(const std::string& id, const std::string& type, const std::string& inputs) {
  return cat("\"", id, "\": {\"class_type\": \"", type, "\", \"inputs\": {", inputs, "}}");
}

// first -> kNodes of `type` -> the end; or each of them reads the first one (`is_row` false).
std::string flow_of(const std::string& first, const std::string& type, const std::string& input,
                    bool is_row) {
  std::string flow = "{" + first;
  for (int i = 1; i <= kNodes; ++i) {
    flow += ", " + node(cat(i), type, cat("\"", input, "\": [\"", is_row ? i - 1 : 0, "\", 0]"));
    if (!is_row || i == kNodes)
      flow += ", " + node(cat("keep", i), "test.keep", cat("\"value\": [\"", i, "\", 0]"));
  }
  return flow + "}";
}

}  // namespace

int main(int argc, char** argv) {
  heddle::EngineOptions options;
  options.default_plugin_dir = HEDDLE_PLUGINS_DIR;
  options.plugin_dirs = {HEDDLE_SAMPLE_PLUGINS_DIR "/sample_arithmetic.so"};
  options.devices = {"cpu:0"};
  options.isolation.python_nodes = {HEDDLE_MEASURED_PACK};
  if (argc > 1) options.isolation.python = argv[1];
  heddle::Engine engine(options);
  const auto tell = [&](const std::string& what, const std::string& flow) {
    std::printf("%-44s %10.1f us\n", what.c_str(), measure(engine, flow));
    std::fflush(stdout);
  };
  tell("a number", flow_of(node("0", "b.Number", ""), "b.Number", "value", true));
  for (const int side : {16, 512, 1024}) {
    const std::string picture =
        node("0", "EmptyImage", cat("\"width\": ", side, ", \"height\": ", side));
    const std::string size = cat(double(side) * side * 12 / (1 << 20), " MiB picture, ");
    tell(size + "looked at", flow_of(picture, "b.Look", "image", false));
    tell(size + "given back", flow_of(picture, "b.Picture", "image", true));
  }
  return 0;
}
