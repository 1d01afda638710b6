// What one source of options says (the command line, the environment, a configuration file), and
// the sources laid over each other. Values are still text, with the place they come from, so that
// whoever refuses one can name it. Pure values; any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cli/option_table.h"

namespace heddle::cli {

// In the order of precedence, highest first. A workflow's own keys stand between the environment
// and the configuration files.
enum class Origin { command_line, environment, configuration };

// One value of an option: what would be written behind it on the command line.
struct Given {
  std::string text;
  Origin origin = Origin::command_line;
  std::string where;  // "--threads", "HEDDLE_THREADS", "heddle.json:3:14"
};

class Layer {
 public:
  void add(const OptionSpec& option, Given given);
  const std::vector<Given>& of(std::string_view option) const;  // empty when not given

 private:
  struct Entry {
    const OptionSpec* option;
    std::vector<Given> given;
  };
  std::vector<Entry> entries_;
};

using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

// HEDDLE_OPTION of every option of the table. `lookup` is std::getenv, or a test's. Lists and pairs
// may be JSON, too, as in a configuration file. An empty variable counts as not set. Throws
// engine::Error with the variable's name.
Layer read_environment(const Lookup& lookup);

// A configuration file's text: an object whose keys are options, or kinds of devices with an object
// of options of their own. Other keys, and those that nearly are an option, are refused with the
// nearest names. `file` names it in messages; relative paths in it are relative to its folder,
// except those of plugins, which are relative to the program.
Layer read_configuration(std::string_view text, const std::filesystem::path& file);

// What an option for a folder may say instead of one that is not to be used: "" or "none".
bool is_no_folder(std::string_view text);

// The nearest first: heddle.json beside the workflow (when there is a workflow), then
// heddle/config.json in $XDG_CONFIG_HOME, or in $HOME/.config. Only files that exist.
std::vector<std::filesystem::path> configuration_files(const std::filesystem::path& workflow,
                                                       const Lookup& lookup);

// Highest precedence first. Of an option with one value or a list, the first layer that gives it
// counts; pairs and assignments add up, lowest precedence first, so that applying them in order
// lets the highest win.
Layer lay_over(const std::vector<Layer>& layers);

// Where the engine's own files are unless an option says otherwise: heddle/ in $XDG_CACHE_HOME, or
// in $HOME/.cache. Empty when neither is set.
std::filesystem::path default_cache_folder(const Lookup& lookup);
// "costs.json" in it; empty, too.
std::filesystem::path default_costs_file(const Lookup& lookup);

}  // namespace heddle::cli
