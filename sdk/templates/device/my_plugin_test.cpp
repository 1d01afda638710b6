// The ops of the device against the reference of heddle's CPU plugin.
// Usage: my_plugin_test FILE_OF_THE_PLUGIN FILE_OF_THE_CPU_PLUGIN
#include <cstdio>
#include <exception>
#include <heddle/testing/conformance.hpp>

int main(int count, char** arguments) try {
  if (count != 3) return 2;
  const auto report = heddle::testing::check_device({.plugin = arguments[1], .cpu = arguments[2]});
  std::fputs(report.text().c_str(), stdout);
  // Ops that were there, and are not any more, would fail nothing.
  const auto offered = [&](const char* op) { return report.ops.at(op).offered > 0; };
  return report.passed() && offered("fill/1") && offered("scale_clamp/1") ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "FAILED: %s\n", error.what());
  return 1;
}
