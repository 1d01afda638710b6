// heddle/testing/node_runner.hpp - one node of a plugin, run by the engine as a workflow runs it:
// inputs in, outputs out. Link with heddle::testing. For any test framework, or none:
//
//   heddle::testing::NodeRunner runner({.plugin_dirs = {"plugins"}});
//   const auto out = runner.run("demo.hello", {{"name", "reader"}, {"times", 2}});
//   assert(out.text("greeting") == "Hello, reader! Hello, reader! ");
//   assert(runner.refusal("demo.hello", {{"times", 0}}).find("'times'") != std::string::npos);
//
// Failures are thrown as EngineError (heddle/engine.hpp), with the code that the node gave.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heddle/engine.hpp"

namespace heddle::testing {

// f32 elements in host memory, row-major: a TENSOR, an IMAGE (count, height, width, channels; 0 to
// 1), a MASK (count, height, width), the samples of a LATENT (count, channels, height, width).
struct Array {
  std::vector<std::int64_t> shape = {};
  std::vector<float> values = {};
};

// What an input is given: a literal as a workflow would write it, a tensor where a link would
// stand, or a record of tensors, such as a LATENT: {{"samples", array}}.
class NodeValue {
 public:
  using Record = std::map<std::string, Array>;
  using Content = std::variant<bool, std::int64_t, double, std::string, Array, Record>;
  NodeValue(bool value) : content_(value) {}                      // NOLINT: a value is meant as one
  NodeValue(int value) : content_(std::int64_t{value}) {}         // NOLINT
  NodeValue(std::int64_t value) : content_(value) {}              // NOLINT
  NodeValue(double value) : content_(value) {}                    // NOLINT
  NodeValue(const char* value) : content_(std::string(value)) {}  // NOLINT
  NodeValue(std::string value) : content_(std::move(value)) {}    // NOLINT
  NodeValue(Array value) : content_(std::move(value)) {}          // NOLINT
  NodeValue(Record value) : content_(std::move(value)) {}         // NOLINT
  const Content& content() const { return content_; }

 private:
  Content content_;
};
using NodeInputs = std::map<std::string, NodeValue>;  // by the input's name

struct RunnerOptions {
  std::vector<std::filesystem::path> plugin_dirs = {};  // besides heddle's own plugins
  std::string device = "cpu:0";  // that the node runs on; "fake:0" with the folder of fake.so
  std::vector<std::filesystem::path> model_dirs = {};
  std::map<std::string, std::string> device_options = {};  // as EngineOptions::device_options
  std::map<std::string, std::string> compute = {};         // as EngineOptions::compute
  // Of heddle's own plugins. Empty: as EngineOptions::default_plugin_dir.
  std::filesystem::path default_plugin_dir = {};
};

// What a run made. Read it while its runner is there.
class NodeOutputs {
 public:
  // By an output's name. Throws EngineError for another type of value, or no such output.
  std::string text(std::string_view output) const;  // of a STRING; else the value as JSON
  std::int64_t integer(std::string_view output) const;
  double number(std::string_view output) const;
  // Of a tensor, or of a record's field ("samples").
  Array array(std::string_view output, std::string_view field = "") const;
  Image image(std::string_view output, std::size_t index = 0) const;

  std::vector<std::filesystem::path> files() const;  // written, in folder()
  std::string shown() const;                         // as Results::ui()
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<double>& progress() const { return progress_; }  // 0 to 1, as they came

 private:
  friend class NodeRunner;
  std::string of(std::string_view output) const;
  Results results_;
  std::string node_;  // empty: outputs are named NODE.OUTPUT
  std::vector<std::string> outputs_, warnings_;
  std::vector<double> progress_;
};

// What a fake device makes fail. Of allocations one and all behind it in the run, at once; of
// copies and launches one, when it runs.
enum class Fault { allocation, copy, launch };

struct FaultReport {
  unsigned struck = 0;    // runs in which something failed: the first of its kind, the second, ...
  unsigned survived = 0;  // of these, runs that gave their results all the same
  std::vector<std::string> messages;  // of those that did not, each once
  std::vector<std::string> wrong;     // other results than without a fault, in that run or the next
  bool passed() const { return struck > 0 && wrong.empty(); }
};

// An engine of its own, with folders of its own for input, output and temporary files, which go
// with it. Every run is made anew: nothing is taken from an earlier one. One thread at a time.
class NodeRunner {
 public:
  explicit NodeRunner(RunnerOptions options = {});
  ~NodeRunner();
  NodeRunner(const NodeRunner&) = delete;
  NodeRunner& operator=(const NodeRunner&) = delete;

  // Inputs that are left out have their defaults.
  NodeOutputs run(std::string_view class_type, const NodeInputs& inputs = {});
  // Why the engine would not run it, a line for each problem; empty: it would.
  std::string refusal(std::string_view class_type, const NodeInputs& inputs = {});
  // A whole workflow, in the API format, with a node that saves or shows something; what is
  // fetched, and its outputs, is named NODE.OUTPUT.
  NodeOutputs run_workflow(std::string_view json, const std::vector<std::string>& fetch = {});

  // Runs the node on a fake device with the 1st, 2nd, ... allocation, copy or launch failing, until
  // a run has fewer of them or `most` have failed. Behind each comes a run without a fault. Either
  // the run fails, or its results are those of a run without faults. REQUIRES: the device is a
  // fake one, "fake:N". Throws std::invalid_argument where it is none.
  FaultReport inject(Fault fault, std::string_view class_type, const NodeInputs& inputs = {},
                     unsigned most = 64);

  // Holds input/, output/ and temp/.
  const std::filesystem::path& folder() const;
  Engine& engine();

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace heddle::testing
