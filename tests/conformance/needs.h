// What a device plugin need not have: a case about it is skipped, and said to be, where the plugin
// under test has it not. With --complete only extensions may be missing.
#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "mini_host.h"
#include "test_device.h"

namespace heddle::conformance {

boost::unit_test::precondition needs_link();     // between devices
boost::unit_test::precondition needs_elapsed();  // between events
boost::unit_test::precondition needs_cancel();   // of work in streams
boost::unit_test::precondition needs_identity();
boost::unit_test::precondition needs_context();  // that it tells of and gives back
boost::unit_test::precondition needs_sharing();  // of memory, with other processes
boost::unit_test::precondition needs_threads();  // which its devices share
boost::unit_test::precondition needs_ops(std::vector<std::string> ops);  // a kernel of each
boost::unit_test::precondition needs_weights(heddle_use use);            // also in block formats
boost::unit_test::precondition needs_two_devices();
boost::unit_test::precondition needs_option(const char* option, OptionValue value);

// Whether the device of this index can be opened so.
bool opens_with(const Plugin& plugin, const OptionMap& options, std::uint32_t index = 0);

}  // namespace heddle::conformance
