// What each command does, once its options are read. All of them print their answer to `output` and
// return the exit code of the program; they throw engine::Error and EngineError for what
// program.cpp turns into a message and a code.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/cli/command_line.h"
#include "engine/cli/output.h"
#include "engine/cli/settings.h"

namespace heddle::cli {

inline constexpr int kExitDone = 0, kExitFailed = 1, kExitUsage = 2;

struct Request {
  Workflow flow;  // of run, resume, plan and convert; no engine has adopted it
  std::optional<RunCheckpoint> checkpoint;  // of resume
  std::filesystem::path file;         // of fetch: the workflow, which need not be one that can run
  std::string class_type;             // of nodes; empty: all
  std::string model;                  // of bench; empty: list them
  std::vector<std::string> operands;  // of those commands that take several
  BenchArguments bench;
  Settings settings;
};

int run_workflow(const Request& request, Output& output);
int plan_workflow(const Request& request, Output& output);
int fetch_models(const Request& request, Output& output);
int tune_devices(const Request& request, Output& output);
int convert_workflow(const Request& request, Output& output);
int bench_model(const Request& request, Output& output);
int serve_jobs(const Request& request, Output& output);   // until a signal comes
int submit_jobs(const Request& request, Output& output);  // these five ask a server
int list_jobs(const Request& request, Output& output);
int change_queue(const Request& request, Output& output);
int list_models(const Request& request, Output& output);
int list_server_devices(const Request& request, Output& output);
int change_keys(const Request& request, Output& output);  // of a file of API keys
int make_plugin(const Request& request, Output& output);  // operands: kind, name
// What configures the build of such a folder, with the heddle that this program is of.
std::vector<std::string> configure_command(const std::string& folder, const std::string& build);
int develop_plugin(const Request& request,
                   Output& output);  // operand: folder; until a signal comes
int list_nodes(const Request& request, Output& output);
int list_devices(const Request& request, Output& output);
int list_plugins(const Request& request, Output& output);

// What a failure means before anything runs: the user's input is wrong (2), or heddle or the
// machine failed (1).
int exit_code_before_run(const EngineError& error);

}  // namespace heddle::cli
