#include "engine/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "engine/base/text.h"

namespace heddle::cli {
namespace {

using engine::cat;

struct CommandSpec {
  Command command;
  const char* name;
  const char* help;
  std::uint32_t options;  // of Commands; 0: none
  const char* operand;    // how help calls it; nullptr: none
  const char* operand_help;
  bool takes_several = false;
};

constexpr CommandSpec kCommands[] = {
    {Command::run, "run", "run a workflow", kRun, "FILE",
     "the workflow, as JSON in either form, or a picture or video with one inside"},
    {Command::resume, "resume", "go on with a run from its checkpoint, after an interruption",
     kResume, "FILE", "the checkpoint, as run --checkpoint-every has written it"},
    {Command::plan, "plan", "print what would run where, without running it", kPlan, "FILE",
     "the workflow, as JSON in either form, or a picture or video with one inside"},
    {Command::fetch, "fetch", "download the model files that a workflow names and that are missing",
     kFetch, "FILE", "the workflow, as JSON"},
    {Command::nodes, "nodes", "list the node types, or describe one", kNodes, "CLASS",
     "the node type to describe"},
    {Command::devices, "devices", "list the devices, or take a server's out of service", kDevices,
     "ACTION", "with --server: enable, disable or drain, and the id of a device", true},
    {Command::plugins, "plugins", "list the plugins, and why one was refused", kPlugins, nullptr,
     nullptr},
    {Command::tune, "tune", "measure the devices, for better plans", kTune, nullptr, nullptr},
    {Command::bench, "bench", "measure a model of random weights", kBench, "MODEL",
     "the model's shape; without one, what there is"},
    {Command::convert, "convert", "print a workflow in ComfyUI's API format", kConvert, "FILE",
     "a workflow as ComfyUI's interface saves it, or a picture or video with one inside"},
    {Command::serve, "serve", "run jobs for ComfyUI's front end and its clients, over HTTP", kServe,
     nullptr, nullptr},
    {Command::submit, "submit", "give workflows to a server, as jobs", kSubmit, "FILE",
     "workflows, as JSON in either form, or pictures or videos with one inside", true},
    {Command::ps, "ps", "list the jobs of a server that run and wait, and why they wait", kPs,
     nullptr, nullptr},
    {Command::queue, "queue", "look at a server's queue, or change it", kQueue, "ACTION",
     "pause, resume (the queue, or jobs by ID), cancel, retry, delete (jobs by ID), move (one job)",
     true},
    {Command::models, "models", "list the models on a server's devices, load, pin and unload them",
     kModels, "ACTION",
     "load FILE DEVICE (of a folder of models, as FOLDER/NAME, or a workflow for all of "
     "its models), pin MODEL DEVICE, unpin MODEL DEVICE, unload, unload MODEL, "
     "unload MODEL DEVICE",
     true},
    {Command::key, "key", "make, list and remove the API keys of a server's users", kKey, "ACTION",
     "list; add, and the name of a user; remove, and the id of a key", true},
    {Command::make, "new", "make the folder of a plugin, which builds, tests itself and runs", 0,
     "KIND",
     "node, family, device, or another that `heddle new ?` lists; then the plugin's name, an "
     "identifier",
     true},
    {Command::develop, "dev",
     "build, test and run the folder of a plugin, again with every change of its files", 0, "DIR",
     "the folder, as new writes it", true},
    {Command::version, "version", "print the version", 0, nullptr, nullptr},
};

constexpr const char* kFooter =
    "Every option is also a key of heddle.json beside the workflow, or of\n"
    "$XDG_CONFIG_HOME/heddle/config.json, and a variable HEDDLE_OPTION.\n"
    "How to write plugins: sdk/guide/README.md, installed in share/doc/heddle.\n"
    "Exit codes: 0 done, 1 the run failed, 2 the workflow or the usage is wrong, 130 interrupted.";

void add_option(CLI::App& app, const OptionSpec& spec, Layer& layer) {
  const std::string flag = cat("--", spec.name);
  const std::string help(spec.help);
  if (spec.kind == OptionKind::flag) {
    app.add_flag_callback(
        flag,
        [&] {
          layer.add(spec, {"true", Origin::command_line, cat("--", spec.name)});
        },
        help);
    return;
  }
  const bool is_single = spec.kind == OptionKind::number || spec.kind == OptionKind::word ||
                         spec.kind == OptionKind::size || spec.kind == OptionKind::path;
  const auto take = [&layer, &spec](const CLI::results_t& values) {
    for (const std::string& value : values)
      layer.add(spec, {value, Origin::command_line, cat("--", spec.name)});
    return true;
  };
  CLI::Option* option = app.add_option(flag, take, help);
  option->type_name(std::string(spec.value))->type_size(1)->allow_extra_args(false);
  option->multi_option_policy(is_single ? CLI::MultiOptionPolicy::Throw
                                        : CLI::MultiOptionPolicy::TakeAll);
  if (!is_single) option->expected(1, CLI::detail::expected_max_vector_size);
}

// The first argument that nothing takes: CLI11 counts them all, last one first.
std::string unexpected(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back(cat("--", name));
  const std::vector<std::string> extras = app.remaining();
  for (const std::string& argument : arguments) {
    if (std::ranges::count(extras, argument) == 0) continue;
    if (!argument.starts_with("-"))
      return cat("nothing takes the argument ", engine::quote(argument), ".");
    const std::string name = argument.substr(0, argument.find('='));
    return cat("there is no option ", engine::quote(name), ".", engine::did_you_mean(name, known));
  }
  return "";
}

std::string unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandSpec& spec : kCommands) names.push_back(spec.name);
  return cat("there is no command ", engine::quote(name), ".", engine::did_you_mean(name, names),
             " The commands are ", engine::join(names, ", "), ".\n");
}

class Parser {
 public:
  Parser() : app_("heddle runs workflow graphs of models over whatever devices there are.") {
    app_.name("heddle");
    app_.footer(kFooter);
    app_.require_subcommand(1);
    app_.set_help_flag("-h,--help", "print this help");
    app_.add_flag("--version", version_, "print the version");
    for (const CommandSpec& spec : kCommands) add_command(spec);
  }

  ParsedArguments parse(std::vector<std::string> arguments) {
    const std::vector<std::string> given = arguments;
    std::reverse(arguments.begin(), arguments.end());
    try {
      app_.parse(arguments);
    } catch (const CLI::CallForHelp& help) {
      return {std::nullopt, {help_text(), true}};
    } catch (const CLI::ParseError& error) {
      if (version_) return {CommandLine{Command::version, "", {}}, {}};
      return {std::nullopt, {problem(error, given), false}};
    }
    for (const CommandSpec& spec : kCommands)
      if (app_.got_subcommand(spec.name)) line_.command = spec.command;
    return {std::move(line_), {}};
  }

 private:
  void add_command(const CommandSpec& spec) {
    CLI::App* app = app_.add_subcommand(spec.name, spec.help);
    app->footer(spec.options == 0 ? "" : kFooter);
    if (spec.operand != nullptr) {
      CLI::Option* operand = spec.takes_several
                                 ? app->add_option(spec.operand, line_.operands, spec.operand_help)
                                 : app->add_option(spec.operand, line_.operand, spec.operand_help);
      operand->type_name("");
      const bool is_needed = spec.command != Command::nodes && spec.command != Command::bench &&
                             spec.command != Command::queue && spec.command != Command::models &&
                             spec.command != Command::devices;
      if (is_needed) operand->required();
    }
    if (spec.command == Command::bench) add_bench_options(*app);
    for (const OptionSpec& option : all_options())
      if ((option.commands & spec.options) != 0) add_option(*app, option, line_.options);
  }

  void add_bench_options(CLI::App& app) {
    BenchArguments& bench = line_.bench;
    app.add_option("--size", bench.size, "pixels of the picture (default: what is usual)")
        ->type_name("WxH");
    app.add_option("--steps", bench.steps, "steps to measure (default: 8, or 4 of few-step models)")
        ->type_name("N");
    app.add_option("--branches", bench.branches, "branches of a step; 2: with guidance")
        ->type_name("N");
    app.add_option("--frames", bench.frames, "frames of a clip (default: what is usual)")
        ->type_name("N");
    app.add_option("--parallel", bench.parallel,
                   "run the model on several devices in parallel: layers, cfg, data, sequence, "
                   "tensor, none; or combined: cfg+sequence")
        ->type_name("MODE");
    app.add_option("--weight-dtype", bench.weight_dtype,
                   "as what the weights are loaded: fp8_e4m3fn, fp8_e4m3fn_fast, ...; or drawn: "
                   "int8, int8_convrot (see --linear-dtype)")
        ->type_name("TYPE");
    app.add_flag("--check", bench.check,
                 "compare a small model of the family with plain loops instead");
  }

  const CLI::App& chosen() const {
    const auto subcommands = app_.get_subcommands();
    return subcommands.empty() ? app_ : *subcommands.front();
  }

  std::string help_text() const { return chosen().help(subcommand_prefix()); }
  std::string subcommand_prefix() const { return &chosen() == &app_ ? "" : "heddle"; }

  std::string problem(const CLI::ParseError& error, const std::vector<std::string>& given) const {
    if (given.empty()) return app_.help();
    const bool is_command = &chosen() != &app_;
    if (!is_command && !given.front().starts_with("-"))
      return cat("heddle: ", unknown_command(given.front()));
    const std::string what = unexpected(chosen(), given);
    const std::string name = is_command ? cat("heddle ", chosen().get_name()) : "heddle";
    return cat(name, ": ", what.empty() ? error.what() : what, "\nTry `", name, " --help`.\n");
  }

  CLI::App app_;
  CommandLine line_;
  bool version_ = false;
};

}  // namespace

ParsedArguments parse_arguments(const std::vector<std::string>& arguments) {
  return Parser().parse(arguments);
}

}  // namespace heddle::cli
