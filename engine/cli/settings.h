// The options of one call of the program, read from their texts into their types. Made once, before
// anything else happens, so that a wrong value is refused before a plugin is loaded. Plain values.
#pragma once

#include <filesystem>
#include <heddle/engine.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/log.h"
#include "engine/cli/layer.h"

namespace heddle::cli {

// KEY=VALUE of --set, --place and --parallel.
struct Pair {
  std::string key;
  std::string value;
  Origin origin = Origin::command_line;
  std::string where;
};

// Of serve. Over 15 members: what options say, each by itself and with a default.
struct ServeSettings {
  std::vector<std::string> addresses = {"127.0.0.1"};
  std::uint16_t port = 8188;
  std::string front_end;        // "pip", a folder, or empty: none
  std::filesystem::path user;   // empty: the default
  std::filesystem::path queue;  // empty: the default
  unsigned jobs = 4;
  std::filesystem::path traces;  // a folder; empty: none are written
  std::filesystem::path packs;   // the same
  PreviewMethod previews = PreviewMethod::linear;
  // What becomes of jobs that ran when the server before this one ended.
  enum class Interrupted { resume, again, fail } interrupted = Interrupted::resume;
  unsigned shutdown_seconds = 10;
  // What goes, so that a disk does not run full; nothing: all stays.
  struct Keep {
    std::optional<unsigned> temp_days, output_days, history_days;
    std::optional<std::uint64_t> temp_bytes, output_bytes;
    std::uint64_t free_bytes = 0;
  } keep;
  std::string api_key;  // empty: none
  // Of serve and key.
  struct Access {
    std::filesystem::path api_keys;           // the file of users' keys; empty: none
    bool adds_admin = false;                  // of key
    std::filesystem::path tls_cert, tls_key;  // both or none
    std::string path_prefix;                  // "/studio"; empty: none
    std::vector<std::string> trusted_proxies;
    unsigned requests_a_minute = 0;  // of a key or an address; 0: no limit
    bool has_json_log = false, logs_requests = false;
  } access;
  std::string cors_origin;  // the same
  bool multi_user = false;
  bool insecure = false;
};

// Of the commands that ask a server.
struct ServerSettings {
  std::string url = "http://127.0.0.1:8188";  // without a "/" at its end
  bool is_given = false;
  std::string api_key;  // empty: none
};

// Of submit and queue.
struct JobSettings {
  std::optional<std::int64_t> priority;
  std::string tag, batch, before;  // empty: not given
  unsigned repeats = 1;
  bool front = false, back = false, paused = false, wait = false, all = false, but_running = false;
  bool background = false, from_start = false;
  bool zip = false;  // lists of --set together, instead of each with each
};

// Over 15 members: what options say, each by itself and with a default.
struct Settings {
  std::vector<Pair> sets, places,
      parallel;             // to apply in this order: of equal keys, the last one counts
  std::vector<Given> only;  // nodes to run for; none: all
  EngineOptions engine;
  std::vector<std::filesystem::path> object_info;  // of convert
  std::filesystem::path trace, svg;                // files to write; empty: none
  std::optional<std::filesystem::path> cache;      // of --cache; empty path: nowhere
  std::filesystem::path costs_file;  // of --costs; the engine reads it where it is there
  std::set<std::string>
      configured_budgets;  // of engine.budgets: those that a configuration file gave
  // Where the options of `engine` were given, by engine::option_frame().
  std::map<std::string, std::string> places_of_options;
  ServeSettings serve;
  ServerSettings server;
  JobSettings job;
  unsigned memory_wait = 0;  // seconds
  // Of run and resume.
  struct Checkpoints {
    unsigned every = 0;          // steps; 0: there are none
    std::filesystem::path file;  // empty: named by the workflow
    std::string options;         // that they keep
  } checkpoints;
  bool json = false;
  bool min_memory = false;  // plan: the least memory instead
  bool quiet = false;
  std::optional<engine::Level> log_level;  // of the process; not given: it stays
};

// Throws engine::Error(invalid_argument) that names the option and where it was given.
Settings read_settings(const Layer& layer);

// What an engine refused of its options, reported with the place where that was given instead of
// the option's name in EngineOptions. Other errors are given back as they are.
EngineError with_place(const EngineError& error, const Settings& settings);

// Lets budgets that the workflow gives its devices count instead of those of configuration files.
void prefer_workflow_budgets(Settings& settings, const std::map<std::string, std::uint64_t>& given);

// "t.json" for a single run, else "t.3.json": a file of its own for every run, numbers from 1. What
// is no file (/dev/stdout) takes them all.
std::filesystem::path numbered(const std::filesystem::path& file, std::size_t run,
                               std::size_t count);

}  // namespace heddle::cli
