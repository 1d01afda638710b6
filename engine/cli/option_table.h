// Every option of the program, once: the command line, the environment (HEDDLE_MODELS) and the
// configuration file ("models") read the same table, so that an option can never be known to one of
// them only. Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heddle::cli {

enum Commands : std::uint32_t {
  kRun = 1,
  kPlan = 2,
  kNodes = 4,
  kDevices = 8,
  kPlugins = 16,
  kTune = 32,
  kBench = 64,
  kFetch = 128,
  kConvert = 256,
  kResume = 512,
  kServe = 1024,
  kSubmit = 2048,
  kPs = 4096,
  kQueue = 8192,
  kModels = 16384,
  kRunThere = 32768,  // run --server
  kKey = 65536,
};

enum class OptionKind {
  flag,         // given or not; true or false in a file
  number,       // a whole number
  word,         // any text
  size,         // of memory: "14GiB", "60%", a number of bytes
  path,         // a file or a folder
  words,        // comma-separated, may be repeated
  paths,        // repeated; separated by ":" in the environment
  pairs,        // KEY=VALUE, repeated; comma-separated in the environment
  assignments,  // as pairs, but VALUE is whole: never separated by commas
};

struct OptionSpec {
  std::string_view name;  // "models": --models, HEDDLE_MODELS, "models" in the configuration
  OptionKind kind;
  std::string_view value;  // how help calls the value: "DIR"
  std::string_view help;
  std::uint32_t commands;  // of Commands: which of them take it
};

std::span<const OptionSpec> all_options();

// nullptr when there is none of this name.
const OptionSpec* find_option(std::string_view name);

// "HEDDLE_MODELS".
std::string environment_name(const OptionSpec& option);

}  // namespace heddle::cli
