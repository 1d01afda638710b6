// An engine whose plugin of samples runs in workers, and what is left of those.
#pragma once

#include <unistd.h>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/support/engine_fixture.h"

namespace heddle::test {

// `names`: plugins that are isolated.
inline EngineOptions isolated_options(std::vector<std::string> names = {"sample_isolated"}) {
  EngineOptions options = engine_options();
  options.plugin_dirs.push_back(HEDDLE_SAMPLE_PLUGINS_DIR "/isolated");
  options.isolation.plugins = std::move(names);
  return options;
}

// Processes that this one has started and that are there, those that have ended and that nobody has
// waited for among them.
inline std::size_t child_processes() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end = text.rfind(") ");  // of the name, which may have anything in it
    if (end == std::string::npos) continue;
    count += std::stol(text.substr(end + 4)) == ::getpid() ? 1 : 0;
  }
  return count;
}

// Of memory that is shared with workers.
inline std::size_t shared_mappings() {
  std::ifstream file("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);)
    count += line.find("/memfd:heddle") != std::string::npos ? 1 : 0;
  return count;
}

inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator begin("/proc/self/fd");
  return std::size_t(std::distance(begin, std::filesystem::directory_iterator()));
}

// One node that ends its process so, and what it gives.
inline std::string ending_workflow(const std::string& how, int value = 1) {
  return R"({"end": {"class_type": "test.isolated.end", "inputs": {"how": ")" + how +
         R"(", "value": )" + std::to_string(value) +
         R"(}}, "keep": {"class_type": "test.keep", "inputs": {"value": ["end", 0]}}})";
}

inline std::string run_text(Engine& engine, const std::string& flow,
                            const std::string& output = "keep.out") {
  StartOptions start;
  start.fetch = {output};
  return engine.start(engine.parse(flow), std::move(start)).wait().text(output);
}

}  // namespace heddle::test
