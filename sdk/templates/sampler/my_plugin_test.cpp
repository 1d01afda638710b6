// The sampler in a small drawing: as long as it is Euler's method, it draws what `euler` draws.
// Usage: my_plugin_test FOLDER_OF_THE_PLUGIN
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <heddle/testing/node_runner.hpp>

namespace testing = heddle::testing;

namespace {

std::string workflow(const std::string& method) {
  return R"({
    "model": {"class_type": "DiffusersLoader", "inputs": {"model_path": "tiny-scenes"}},
    "text": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["model", 1], "text": "a house"}},
    "size": {"class_type": "EmptySD3LatentImage",
             "inputs": {"width": 64, "height": 64, "batch_size": 1}},
    "draw": {"class_type": "KSampler",
             "inputs": {"model": ["model", 0], "positive": ["text", 0], "negative": ["text", 0],
                        "latent_image": ["size", 0], "seed": 1, "steps": 3, "cfg": 1.0,
                        "scheduler": "simple", "denoise": 1.0, "sampler_name": ")" +
         method + R"("}},
    "show": {"class_type": "PreviewAny", "inputs": {"source": ["draw", 0]}}})";
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) return 2;
  testing::NodeRunner runner({.plugin_dirs = {arguments[1]}});
  const auto draw = [&](const char* method) {
    return runner.run_workflow(workflow(method), {"draw.LATENT"}).array("draw.LATENT", "samples");
  };
  const auto expected = draw("euler"), made = draw("my_plugin");
  if (made.shape != expected.shape || made.values.empty()) return 1;
  float most = 0, largest = 0;
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    most = std::max(most, std::fabs(made.values[i] - expected.values[i]));
    largest = std::max(largest, std::fabs(expected.values[i]));
  }
  std::printf("largest difference %g of %g\n", double(most), double(largest));
  return most <= 1e-4f * largest ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "FAILED: %s\n", error.what());
  return 1;
}
