// What the conformance program was told on its command line. Set once in main(), read by the tests.
#pragma once

#include <cstdint>
#include <string>

#include "mini_host.h"

namespace heddle::conformance {

struct Settings {
  std::string plugin;   // the library of the device under test
  std::string oracle;   // the library of the CPU device, whose reference is the meaning of every op
  std::string goldens;  // the file that make_goldens.py wrote
  OptionMap options;    // of the device under test
  std::string only;     // a regular expression: of cases with it in their names
  std::uint64_t seed = 1;
  bool complete = false;  // what the device does not offer is a failure
};

const Settings& settings();

}  // namespace heddle::conformance
