// What Engine::plugins() tells of each plugin, loaded or refused (heddle/engine.hpp).
#pragma once

#include <string>
#include <vector>

namespace heddle {

struct PluginInfo {
  // "nodes", "blocks" (nodes that models are made of), "model families", "devices", "kernels for
  // cpu" (by the names of their ops), "samplers", "noise schedules", and whatever else nodes have
  // their choices from.
  struct Kind {
    std::string name;
    std::vector<std::string> items;  // at least one
  };
  std::string id, version, path, refused;  // refused: why, when it was not loaded
  std::vector<Kind> brings;
};

}  // namespace heddle
