// An engine with the sample plugins and the cpu device, for tests that run workflows. Where the
// environment names another device in HEDDLE_TEST_DEVICE ("cuda:0"), that one: goldens that models
// are held against can then be compared there, too (tests/README.md).
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "heddle/engine.hpp"

namespace heddle::test {

inline std::string test_device() {
  const char* const device = std::getenv("HEDDLE_TEST_DEVICE");
  return device == nullptr ? "cpu:0" : device;
}
inline std::string test_device_kind() { return test_device().substr(0, test_device().find(':')); }

inline EngineOptions engine_options() {
  EngineOptions options;
  options.default_plugin_dir = HEDDLE_PLUGINS_DIR;
  options.plugin_dirs = {HEDDLE_SAMPLE_PLUGINS_DIR};
  options.devices = {test_device()};
  options.cache_bytes = 64 << 20;
  return options;
}

// {"1": {"class_type": "...", "inputs": {...}}, ...}: nodes given as JSON texts.
inline std::string workflow(std::initializer_list<std::pair<const char*, const char*>> nodes) {
  std::string text = "{";
  for (const auto& [id, node] : nodes)
    text += (text.size() > 1 ? ", " : "") + ("\"" + std::string(id) + "\": ") + node;
  return text + "}";
}

// What the call throws, or "" when it throws nothing.
template <class F>
std::string engine_refusal(F&& call) {
  try {
    call();
  } catch (const EngineError& error) {
    return error.what();
  }
  return "";
}

}  // namespace heddle::test
