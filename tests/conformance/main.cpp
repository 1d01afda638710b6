// The conformance program of device plugins.
//
//   conformance test    --plugin FILE [--oracle FILE] [--goldens FILE] [--option KEY=VALUE]...
//                       [--seed N] [--only REGEX] [--complete yes] [-- BOOST OPTIONS]
//   conformance bench   --plugin FILE [--option KEY=VALUE]...
//   conformance speed   --plugin FILE [--option KEY=VALUE]... [--only REGEX]
//   conformance support --plugin FILE [--option KEY=VALUE]...
//
// test: Boost.Test over all cases; every kernel on every one, or those of which "CASE with KERNEL"
// has REGEX in it. A device says by its kernels' `fits` and its `weight_layout` what it has: all of
// that is run, the rest is counted, and no failure but with --complete. bench: seconds of each
// kernel on each case. speed: the rate of the best kernel at the sizes of image models, of all
// cases or those in whose names REGEX finds something. support: a table of ops and kernels.
// --oracle is the CPU plugin, else ../plugins/cpu.so from the program; --goldens is what
// make_goldens.py wrote, else goldens.safetensors beside the program.
#define BOOST_TEST_NO_MAIN
#include <boost/test/unit_test.hpp>

#include <cctype>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "modes.h"
#include "settings.h"
#include "test_device.h"
#include "tests/support/case_watch.h"

namespace heddle::conformance {

namespace {

Settings parsed;

OptionValue option_value(const std::string& text) {
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0)
    return std::int64_t{std::stoll(text)};
  return text;
}

void read_flag(const std::string& flag, const std::string& value) {
  if (flag == "--plugin")
    parsed.plugin = value;
  else if (flag == "--oracle")
    parsed.oracle = value;
  else if (flag == "--goldens")
    parsed.goldens = value;
  else if (flag == "--only")
    parsed.only = value;
  else if (flag == "--seed")
    parsed.seed = std::stoull(value);
  else if (flag == "--complete" && (value == "yes" || value == "no"))
    parsed.complete = value == "yes";
  else if (flag == "--option" && value.find('=') != std::string::npos)
    parsed.options[value.substr(0, value.find('='))] =
        option_value(value.substr(value.find('=') + 1));
  else
    throw std::invalid_argument(flag + " " + value +
                                ": unknown. See the top of tests/conformance/main.cpp");
}

// What stands beside the program, in a build folder as where it is installed.
std::string beside_program(const char* name) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / name).lexically_normal().string();
}

void find_the_rest() {
  std::error_code error;
  if (parsed.plugin.empty()) throw std::invalid_argument("--plugin FILE is missing");
  if (parsed.oracle.empty()) parsed.oracle = beside_program("../plugins/cpu.so");
  if (parsed.goldens.empty()) parsed.goldens = beside_program("goldens.safetensors");
  // Without the other one a plugin is its own.
  if (!std::filesystem::exists(parsed.oracle, error) ||
      std::filesystem::equivalent(parsed.oracle, parsed.plugin, error))
    parsed.oracle = parsed.plugin;
}

}  // namespace

const Settings& settings() { return parsed; }

}  // namespace heddle::conformance

int main(int argc, char** argv) {
  using namespace heddle::conformance;
  const std::string mode = argc > 1 ? argv[1] : "";
  std::vector<char*> rest{argv[0]};
  // A device that lets another one compute finds it in the registry.
  std::unique_ptr<const Plugin> helper;
  try {
    parsed.seed = std::random_device{}();
    int i = 2;
    for (; i + 1 < argc && std::string(argv[i]) != "--"; i += 2) read_flag(argv[i], argv[i + 1]);
    for (++i; i < argc; ++i) rest.push_back(argv[i]);
    find_the_rest();
    if (parsed.oracle != parsed.plugin) helper = std::make_unique<const Plugin>(parsed.oracle);
    if (mode == "bench") return bench();
    if (mode == "speed") return speed();
    if (mode == "support") return support();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance: %s\n", error.what());
    return 2;
  }
  if (mode != "test") {
    std::fprintf(stderr,
                 "conformance: the first argument is test, bench, speed or support, not '%s'\n",
                 mode.c_str());
    return 2;
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(parsed.seed));
  const heddle::test::CaseWatch watch;
  return watch.exit_code(boost::unit_test::unit_test_main(
      [] { return true; }, static_cast<int>(rest.size()), rest.data()));
}
