// What a device plugin need not have: a case about it is skipped, and said to be, where the plugin
// under test has it not.
#pragma once

#include <boost/test/unit_test.hpp>

namespace heddle::conformance {

boost::unit_test::precondition needs_link();     // between devices
boost::unit_test::precondition needs_elapsed();  // between events
boost::unit_test::precondition needs_cancel();   // of work in streams
boost::unit_test::precondition needs_identity();
boost::unit_test::precondition needs_context();  // that it tells of and gives back
boost::unit_test::precondition needs_threads();  // which its devices share

}  // namespace heddle::conformance
