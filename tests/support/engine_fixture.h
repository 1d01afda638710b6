// An engine with the sample plugins and the cpu device, for tests that run workflows. The plain
// loops are used when `reference` is asked for, and in sanitizer builds there is nothing else.
#pragma once

#include <filesystem>
#include <string>

#include "heddle/engine.hpp"

namespace heddle::test {

inline EngineOptions engine_options() {
  EngineOptions options;
  options.default_plugin_dir = HEDDLE_PLUGINS_DIR;
  options.plugin_dirs = {HEDDLE_SAMPLE_PLUGINS_DIR};
  options.devices = {"cpu:0"};
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
