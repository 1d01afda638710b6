// The conformance program of device plugins.
//
//   conformance test    --plugin FILE [--oracle FILE] --goldens FILE [--option KEY=VALUE]...
//                       [--seed N] [--only REGEX] [-- BOOST OPTIONS]
//   conformance bench   --plugin FILE [--option KEY=VALUE]...
//   conformance speed   --plugin FILE [--option KEY=VALUE]... [--only REGEX]
//   conformance support --plugin FILE [--option KEY=VALUE]...
//
// test: Boost.Test over all cases; every kernel on every one, or those of which "CASE with KERNEL"
// has REGEX in it. bench: seconds of each kernel on each case. speed: the rate of the best kernel
// at the sizes of image models, of all cases or those in whose names REGEX finds something.
// support: a table of ops and kernels. --oracle is the CPU plugin, when another one is under test.
#define BOOST_TEST_NO_MAIN
#include <boost/test/unit_test.hpp>

#include <cctype>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <string>
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
  else if (flag == "--option" && value.find('=') != std::string::npos)
    parsed.options[value.substr(0, value.find('='))] =
        option_value(value.substr(value.find('=') + 1));
  else
    throw std::invalid_argument(flag + " " + value +
                                ": unknown. See the top of tests/conformance/main.cpp");
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
    if (parsed.oracle.empty()) parsed.oracle = parsed.plugin;
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
