#include "engine/cli/program.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/base/error.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"
#include "engine/cli/command_line.h"
#include "engine/cli/commands.h"
#include "engine/cli/interrupt.h"
#include "engine/cli/kept_options.h"
#include "engine/cli/stack.h"

namespace heddle::cli {
namespace {

using engine::cat;
using engine::Code;

void complain(std::string_view message) { to_stderr(cat("heddle: ", message)); }

std::optional<std::string> environment(const std::string& name) {
  const char* text = std::getenv(name.c_str());
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

std::uint32_t options_of(Command command) {
  switch (command) {
    case Command::run:
      return kRun;
    case Command::resume:
      return kResume;
    case Command::plan:
      return kPlan;
    case Command::fetch:
      return kFetch;
    case Command::nodes:
      return kNodes;
    case Command::devices:
      return kDevices;
    case Command::plugins:
      return kPlugins;
    case Command::tune:
      return kTune;
    case Command::bench:
      return kBench;
    case Command::convert:
      return kConvert;
    case Command::serve:
      return kServe;
    case Command::submit:
      return kSubmit;
    case Command::ps:
      return kPs;
    case Command::queue:
      return kQueue;
    case Command::models:
      return kModels;
    case Command::key:
      return kKey;
    default:
      return 0;
  }
}

// An option that this command does not take is no fault in a file or a variable that serves them
// all.
Layer only_of(const Layer& layer, std::uint32_t commands) {
  Layer kept;
  for (const OptionSpec& option : all_options())
    if ((option.commands & commands) != 0)
      for (const Given& given : layer.of(option.name)) kept.add(option, given);
  return kept;
}

// A variable that other commands go by moves no run to another machine.
bool runs_there(const CommandLine& line) {
  return line.command == Command::run && !line.options.of("server").empty();
}

// What would have an effect here alone is refused where somebody writes it beside --server.
Layer options_for(const CommandLine& line, const Layer& all) {
  if (line.command != Command::run) return only_of(all, options_of(line.command));
  const bool is_there = runs_there(line);
  for (const OptionSpec& option : all_options())
    for (const Given& given : line.options.of(option.name))
      if (is_there && (option.commands & kRunThere) == 0)
        throw engine::Error(Code::invalid_argument,
                            cat(given.where,
                                ": the server decides this. It is no option beside "
                                "--server."));
  if (is_there) return only_of(all, kRunThere);
  Layer here, kept = only_of(all, kRun);
  for (const OptionSpec& option : all_options())
    if (option.name != "server" && option.name != "api-key")
      for (const Given& given : kept.of(option.name)) here.add(option, given);
  return here;
}

// A name that leads nowhere from here may be that of a workflow which ComfyUI's user has saved.
std::filesystem::path find_workflow(const std::filesystem::path& file, const Settings& settings) {
  std::error_code ignored;
  if (settings.engine.comfyui_dir.empty() || std::filesystem::exists(file, ignored)) return file;
  std::filesystem::path saved = settings.engine.comfyui_dir / "user/default/workflows" / file;
  return std::filesystem::is_regular_file(saved, ignored) ? saved : file;
}

// Of run, plan and convert the workflow comes, too: it is read once, as it may come through a pipe.
void read_settings_of(const CommandLine& line, const std::filesystem::path& workflow,
                      Request& request) {
  std::vector<Layer> layers{line.options, read_environment(&environment)};
  if (line.command == Command::resume) {
    request.checkpoint = RunCheckpoint::load(line.operand);
    layers.push_back(read_kept_options(request.checkpoint->note(), line.operand));
  }
  for (const std::filesystem::path& file : configuration_files(workflow, &environment))
    layers.push_back(read_configuration(engine::read_file(file, engine::kConfigurationFile), file));
  Settings& settings = request.settings;
  const Layer options = options_for(line, lay_over(layers));
  settings = read_settings(options);
  if (settings.log_level) engine::set_log_level(*settings.log_level);
  if (line.command == Command::run || line.command == Command::resume)
    settings.checkpoints.options = kept_options(options);
  if (line.command == Command::run && settings.checkpoints.file.empty())
    settings.checkpoints.file = cat(workflow.stem().string(), ".checkpoint");
  if (line.command == Command::resume) {
    request.flow = request.checkpoint->workflow();
    if (settings.checkpoints.file.empty()) settings.checkpoints.file = line.operand;
    prefer_workflow_budgets(settings, request.flow.budgets());
  }
  if (line.command == Command::fetch) request.file = find_workflow(workflow, settings);
  if (line.command != Command::fetch && !workflow.empty()) {
    request.flow = Workflow::load(find_workflow(workflow, settings));
    prefer_workflow_budgets(settings, request.flow.budgets());
  }
  std::error_code ignored;
  const std::filesystem::path cache = settings.cache.value_or(default_cache_folder(&environment));
  // A plan tells what there is to do, and is quick: it reads no file for a key.
  const bool runs = line.command == Command::run || line.command == Command::resume ||
                    line.command == Command::serve;
  if (runs && !cache.empty()) settings.engine.cache_dir = cache / "conditionings";
  if (settings.costs_file.empty()) {
    settings.costs_file = default_costs_file(&environment);
    // Nothing measured yet is no fault; a file that was named has to be there, unless it is about
    // to be written.
    if (std::filesystem::exists(settings.costs_file, ignored))
      settings.engine.costs = settings.costs_file;
  } else if (line.command != Command::tune ||
             (std::filesystem::exists(settings.costs_file, ignored) &&
              !engine::is_written_through(settings.costs_file))) {
    settings.engine.costs = settings.costs_file;
  }
}

int carry_out(Command command, const Request& request, Output& output) {
  switch (command) {
    case Command::run:
    case Command::resume:
      return run_workflow(request, output);
    case Command::plan:
      return plan_workflow(request, output);
    case Command::fetch:
      return fetch_models(request, output);
    case Command::nodes:
      return list_nodes(request, output);
    case Command::devices:
      return request.settings.server.is_given ? list_server_devices(request, output)
                                              : list_devices(request, output);
    case Command::plugins:
      return list_plugins(request, output);
    case Command::tune:
      return tune_devices(request, output);
    case Command::bench:
      return bench_model(request, output);
    case Command::convert:
      return convert_workflow(request, output);
    case Command::serve:
      return serve_jobs(request, output);
    case Command::submit:
      return submit_jobs(request, output);
    case Command::ps:
      return list_jobs(request, output);
    case Command::queue:
      return change_queue(request, output);
    case Command::models:
      return list_models(request, output);
    case Command::key:
      return change_keys(request, output);
    case Command::make:
      return make_plugin(request, output);
    case Command::develop:
      return develop_plugin(request, output);
    case Command::version:
      output.write(cat("heddle ", Engine().version(), "\n"));
      return kExitDone;
  }
  return kExitUsage;
}

int run_command(const CommandLine& line, Output& output) {
  std::error_code ignored;
  const bool takes_workflow = line.command == Command::run || line.command == Command::plan ||
                              line.command == Command::fetch || line.command == Command::convert;
  Request request;
  const std::filesystem::path workflow = takes_workflow ? line.operand : std::string();
  if (takes_workflow && std::filesystem::is_directory(workflow, ignored))
    throw engine::Error(Code::invalid_argument,
                        cat(workflow.string(), ": is a folder: name a workflow in it."));
  if (line.command == Command::nodes) request.class_type = line.operand;
  if (line.command == Command::bench) request.model = line.operand;
  request.bench = line.bench;
  request.operands = line.operands;
  if (options_of(line.command) != 0) read_settings_of(line, workflow, request);
  try {
    return carry_out(line.command, request, output);
  } catch (const EngineError& error) {
    throw with_place(error, request.settings);
  }
}

// A full disk behind stdout would otherwise look like success.
int finish(const Output& output, int code) {
  if (output.failure() == 0) return code;
  complain(cat("stdout: ", std::strerror(output.failure())));
  return code == kExitDone ? kExitFailed : code;
}

int exit_code_of(Code code) {
  const bool is_ours =
      code == Code::internal || code == Code::out_of_memory || code == Code::cancelled;
  return is_ours ? kExitFailed : kExitUsage;
}

}  // namespace

int exit_code_before_run(const EngineError& error) {
  return exit_code_of(static_cast<Code>(error.code()));
}

namespace {

int answer(const std::vector<std::string>& arguments) {
  Output output;
  try {
    const ParsedArguments parsed = parse_arguments(arguments);
    if (parsed.command_line) return finish(output, run_command(*parsed.command_line, output));
    if (parsed.answer.is_help) {
      output.write(parsed.answer.text);
      return finish(output, kExitDone);
    }
    std::fputs(engine::printable_lines(parsed.answer.text).c_str(), stderr);
    return kExitUsage;
  } catch (const EngineError& error) {
    complain(error.what());
    return exit_code_before_run(error);
  } catch (const engine::Error& error) {
    complain(error.full());
    return exit_code_of(error.code());
  } catch (const std::exception& error) {
    complain(error.what());
    return kExitFailed;
  }
}

// Where memory is so short that not even an error can be told, or thrown as what it is.
template <typename Call>
int whatever_memory_there_is(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kText = "heddle: host memory is exhausted\n";
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, kText.data(), kText.size());
    return kExitFailed;
  }
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write(), not our end
  const auto run = [&] {
    try {
      return with_enough_stack(
          [&] { return whatever_memory_there_is([&] { return answer(arguments); }); });
    } catch (const engine::Error& error) {
      complain(error.full());
      return exit_code_of(error.code());
    }
  };
  const int code = whatever_memory_there_is(run);
  set_exit_code(code);
  // Where memory was out while a library was opened, glibc's loader has stayed locked by the thread
  // that has ended: what runs at exit would wait for it.
  done();
  return code;
}

}  // namespace heddle::cli
