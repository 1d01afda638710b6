// The arguments of the program: which command, its operand, its options. The only door to CLI11.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/cli/layer.h"

namespace heddle::cli {

enum class Command {
  run,
  resume,
  plan,
  fetch,
  nodes,
  devices,
  plugins,
  tune,
  bench,
  convert,
  serve,
  submit,
  ps,
  queue,
  models,
  key,
  make,     // "new"
  develop,  // "dev"
  version
};

// What only `bench` takes, still as texts; empty: not given.
struct BenchArguments {
  std::string size;  // "1024x768"
  std::string steps, branches, frames, parallel, weight_dtype;
  bool check = false;
};

struct CommandLine {
  Command command = Command::run;
  std::string
      operand;  // the workflow's file, a class, or a model's shape; empty when there is none
  std::vector<std::string> operands;  // of those commands that take several
  BenchArguments bench;
  Layer options;
};

// What is to be printed instead: help on stdout, or on stderr what is wrong with the arguments.
struct Answer {
  std::string text;
  bool is_help = false;
};

struct ParsedArguments {
  std::optional<CommandLine> command_line;  // or else
  Answer answer;
};

// `arguments` without the program's name.
ParsedArguments parse_arguments(const std::vector<std::string>& arguments);

}  // namespace heddle::cli
