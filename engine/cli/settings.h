// The options of one call of the program, read from their texts into their types. Made once, before
// anything else happens, so that a wrong value is refused before a plugin is loaded. Plain values.
#pragma once

#include <filesystem>
#include <heddle/engine.hpp>
#include <string>
#include <vector>

#include "engine/cli/layer.h"

namespace heddle::cli {

// KEY=VALUE of --set, --place and --split.
struct Pair {
  std::string key;
  std::string value;
  Origin origin = Origin::command_line;
  std::string where;
};

struct Settings {
  std::vector<Pair> sets, places, splits;  // to apply in this order: of equal keys, the last one counts
  EngineOptions engine;
  bool json = false;
  bool quiet = false;
  std::vector<std::string> warnings;
};

// Throws core::Error(invalid_argument) that names the option and where it was given: a value that
// does not fit, or an option whose part of the engine is not there yet.
Settings read_settings(const Layer& layer);

// Where the program's file is.
std::filesystem::path program_folder();

}  // namespace heddle::cli
