// heddle/testing/conformance.hpp - the ops of the catalogue on a device plugin, against the
// reference of heddle's CPU plugin. Link with heddle::conformance; neither libheddle nor a test
// framework is needed.
//
//   const auto report = heddle::testing::check_device({.plugin = "my_device.so", .cpu = "cpu.so"});
//   std::cout << report.text();
//   return report.passed() ? 0 : 1;
//
// The program lib/heddle/testing/conformance does the same, and holds streams, events, copies, weights and
// refusals against the rules of heddle/abi/device.h, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace heddle::testing {

struct DeviceCheck {
  std::filesystem::path plugin = {};  // the library of the device
  std::filesystem::path cpu = {};     // heddle's own CPU plugin, cpu.so, which has the reference
  std::map<std::string, std::variant<std::int64_t, std::string>> options =
      {};                  // that it is opened with
  std::uint64_t seed = 1;  // of the operands; the same gives the same numbers
};

// What an op has: cases of the table by what became of them.
struct OpReport {
  int offered = 0;      // some kernel fits it: all of these are run, by every kernel that fits
  int not_offered = 0;  // no kernel fits, or its weights have no layout: not run, and no failure
  int failed = 0;       // of those offered
};

struct DeviceReport {
  std::string kind;                     // "cpu"
  std::map<std::string, OpReport> ops;  // by "linear/1"
  std::vector<std::string> failures;    // "CASE with KERNEL: what differs, and where"
  // Some op is offered, and nothing failed.
  bool passed() const;
  // A line for each op that is offered, the number of those that are not, and every failure.
  std::string text() const;
};

// Runs every case that the device offers, by each of its kernels that fits: the values are those of
// the reference within what rounding to the type of the output explains, nothing is written beside
// the output, an output on its input has the same bytes, and so has an item of a batch alone.
// Throws std::runtime_error where a plugin cannot be loaded or its device cannot be opened. What
// goes wrong in a case is a failure of the report. One thread at a time.
DeviceReport check_device(const DeviceCheck& check);

}  // namespace heddle::testing
