// The node by itself, then on a fake device whose memory and launches fail.
// Usage: my_plugin_test FOLDER_OF_THE_PLUGIN FOLDER_OF_FAKE_DEVICES
#include <cmath>
#include <cstdio>
#include <heddle/testing/node_runner.hpp>

namespace testing = heddle::testing;

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

const testing::Array kPicture{{1, 1, 2, 3}, {0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.9f}};

void test_values(const char* plugin) {
  testing::NodeRunner runner({.plugin_dirs = {plugin}});
  const auto made =
      runner.run("example.my_plugin", {{"image", kPicture}, {"factor", 2.0}}).array("IMAGE");
  expect(made.shape == kPicture.shape, "the picture keeps its shape");
  const float expected[] = {0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f};  // the last one is clamped
  for (std::size_t i = 0; i < made.values.size(); ++i)
    expect(std::fabs(made.values[i] - expected[i]) < 1e-6f, "each channel is doubled");
  expect(runner.refusal("example.my_plugin", {{"image", kPicture}, {"factor", 2.0}}).empty(),
         "a factor of 2 is taken");
  const std::string refusal =
      runner.refusal("example.my_plugin", {{"image", kPicture}, {"factor", -1.0}});
  expect(refusal.find("factor") != std::string::npos, "a factor below 0 is refused by name");
}

void test_faults(const char* plugin, const char* fake_devices) {
  testing::NodeRunner runner({.plugin_dirs = {plugin, fake_devices}, .device = "fake:0"});
  for (const testing::Fault fault : {testing::Fault::allocation, testing::Fault::launch}) {
    const auto report =
        runner.inject(fault, "example.my_plugin", {{"image", kPicture}, {"factor", 2.0}});
    // A node that works in host memory (HEDDLE_NODE_HOST) has none there: leave this test out.
    expect(report.struck > 0, "the node allocates and launches on the device");
    expect(report.wrong.empty(), "a fault fails the run, or changes nothing");
    for (const std::string& wrong : report.wrong) std::fprintf(stderr, "  %s\n", wrong.c_str());
  }
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) return 2;
  test_values(arguments[1]);
  test_faults(arguments[1], arguments[2]);
  return failures == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "FAILED: %s\n", error.what());
  return 1;
}
