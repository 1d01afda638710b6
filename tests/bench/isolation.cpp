// What a call of a node costs in a worker, beside the same node in the engine's own process: a row
// of nodes, each of which reads what the one before it has made, is run often; times are of one
// node, the fastest run's. Prints microseconds here, in a worker, and the difference:
//
//   a number                what a call across costs by itself
//   a tensor that is passed on: it is in shared memory once the first node has it
//   a tensor that is made anew, element by element
//   a tensor that comes from this process at every call, and is copied into shared memory
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <list>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "heddle/engine.hpp"
#include "tests/support/lent_tensor.h"

namespace {

using heddle::engine::cat;
constexpr int kNodes = 40, kRuns = 10;

heddle::EngineOptions options(bool isolated) {
  heddle::EngineOptions options;
  options.default_plugin_dir = HEDDLE_PLUGINS_DIR "/cpu.so";
  options.plugin_dirs = {HEDDLE_SAMPLE_PLUGINS_DIR "/sample_arithmetic.so",
                         HEDDLE_SAMPLE_PLUGINS_DIR "/isolated"};
  options.devices = {"cpu:0"};
  if (isolated) options.isolation.plugins = {"sample_isolated"};
  return options;
}

// Microseconds of a node, in a row of `count` of them.
double measure(heddle::Engine& engine, const std::string& flow, std::int64_t given_bytes = 0) {
  double best = 1e9;
  const heddle::Workflow workflow = engine.parse(flow);
  for (int i = 0; i < kRuns; ++i) {
    heddle::StartOptions start;
    start.anew = true;  // nothing comes from the cache
    // They come back when the engine is done with them.
    static std::list<heddle::test::LentTensor> all_given;
    heddle::test::LentTensor& given =
        all_given.emplace_back(std::vector<std::int64_t>{given_bytes / 4},
                               std::vector<float>(std::size_t(given_bytes / 4)));
    if (given_bytes > 0) start.inputs["0.value"] = given.lend();
    const auto begin = std::chrono::steady_clock::now();
    engine.start(workflow, std::move(start)).wait();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / kNodes);
  }
  return best;
}

std::string node(const std::string& id, const std::string& type, const std::string& inputs) {
  return cat("\"", id, "\": {\"class_type\": \"", type, "\", \"inputs\": {", inputs, "}}, ");
}

// first -> kNodes of `type` -> the end.
std::string in_a_row(const std::string& first, const std::string& type, const std::string& input) {
  std::string flow = "{" + first;
  for (int i = 1; i <= kNodes; ++i)
    flow += node(cat(i), type, cat("\"", input, "\": [\"", i - 1, "\", 0]"));
  return flow + node("keep", "test.keep", cat("\"value\": [\"", kNodes, "\", 0]")) +
         R"("last": {"class_type": "test.keep", "inputs": {"value": 1}}})";
}

// A tensor of this process that all of them read.
std::string side_by_side() {
  std::string flow = "{" + node("0", "test.keep", "");
  for (int i = 1; i <= kNodes; ++i) {
    flow += node(cat(i), "test.isolated.echo", cat("\"in\": [\"0\", 0], \"number\": ", i));
    flow += node(cat("keep", i), "test.keep", cat("\"value\": [\"", i, "\", 0]"));
  }
  return flow + R"("last": {"class_type": "test.keep", "inputs": {"value": 1}}})";
}

}  // namespace

int main() {
  heddle::Engine here(options(false)), there(options(true));
  const auto compare = [&](const std::string& what, const std::string& flow,
                           std::int64_t given = 0) {
    const double direct = measure(here, flow, given), across = measure(there, flow, given);
    std::printf("%-44s %10.1f %10.1f %10.1f us\n", what.c_str(), direct, across, across - direct);
    std::fflush(stdout);
  };
  std::printf("%-44s %10s %10s %10s\n", "", "here", "a worker", "more");
  compare("a number", in_a_row(node("0", "test.isolated.end", ""), "test.isolated.end", "value"));
  for (const int mebibytes : {1, 16}) {
    const std::string count = node("0", "test.isolated.count", cat("\"rows\": ", mebibytes << 16));
    compare(cat(mebibytes, " MiB, passed on"), in_a_row(count, "test.isolated.echo", "in"));
    compare(cat(mebibytes, " MiB, each made anew"), in_a_row(count, "test.isolated.shift", "in"));
    compare(cat(mebibytes, " MiB, copied at every call"), side_by_side(),
            std::int64_t{mebibytes} << 20);
  }
  return 0;
}
