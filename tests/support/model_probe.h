// Runs one model of a family through the engine in a test: the plugin `model_probe` gives it
// tensors from a golden file and hands its outputs back. The cpu device in f32 unless told
// otherwise, so that results compare with PyTorch's f32.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "heddle/engine.hpp"
#include "tests/support/engine_fixture.h"
#include "tests/support/tensor_file.h"

namespace heddle::test {

struct ModelCall {
  std::filesystem::path model;    // a .safetensors file or a folder of shards
  std::string role;               // "diffusion_model"
  std::string config;             // JSON, or empty
  std::filesystem::path tensors;  // the golden file
  std::string prefix;             // "flux.": inputs are "flux.x", ...
  std::string without = {};       // inputs to leave out, apart by commas
};

class ModelProbe {
 public:
  // `linear_dtype`: EngineOptions::linear_dtype.
  explicit ModelProbe(const char* compute = "f32", const char* linear_dtype = "")
      : engine_(options(compute, linear_dtype)) {}

  // Throws EngineError.
  Results call(const ModelCall& call) {
    const std::string node = std::string(R"({"class_type": "test.call_model", "inputs": {)") +
                             field("path", call.model.string()) + field("role", call.role) +
                             field("config", call.config) +
                             field("tensors", call.tensors.string()) +
                             field("prefix", call.prefix) + field("without", call.without, "}}");
    const std::string flow =
        workflow({{"model", node.c_str()},
                  {"look", R"({"class_type": "test.look", "inputs": {"value": ["model", 0]}})"}});
    return engine_.start(engine_.parse(flow), {{}, {"model.outputs", "model.settings"}}).wait();
  }

 private:
  static EngineOptions options(const char* compute, const char* linear_dtype) {
    EngineOptions options = engine_options();
    options.compute[test_device_kind()] = compute;
    options.linear_dtype = linear_dtype;
    return options;
  }
  static std::string field(const std::string& name, const std::string& text,
                           const char* end = ", ") {
    std::string quoted;
    for (const char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c == '\n' ? ' ' : c;
    }
    return "\"" + name + "\": \"" + quoted + "\"" + end;
  }

  Engine engine_;
};

// |a - b| / |b|, over all elements; infinite when the numbers of elements differ.
inline double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || b.empty()) return HUGE_VAL;
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    whole += double(b[i]) * b[i];
  }
  const double error = std::sqrt(difference / whole);
  return std::isnan(error) ? HUGE_VAL : error;
}

}  // namespace heddle::test
