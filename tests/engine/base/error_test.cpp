#include "engine/base/error.h"

#include <boost/test/unit_test.hpp>
#include <cerrno>

using namespace heddle::core;

BOOST_AUTO_TEST_SUITE(error_test)

BOOST_AUTO_TEST_CASE(error_without_trail_is_its_message) {
  const Error error(Code::not_found, "no node 'x'");
  BOOST_TEST(error.full() == "no node 'x'");
  BOOST_TEST(error.trail().empty());
}

BOOST_AUTO_TEST_CASE(frames_are_prepended_and_shown_outermost_first) {
  Error error(Code::internal, "shape is [1, 2]");
  error.at("step 3").at("node 'decode'");
  BOOST_TEST(error.full() == "node 'decode' / step 3: shape is [1, 2]");
  BOOST_TEST(error.trail() == (std::vector<std::string>{"node 'decode'", "step 3"}),
             boost::test_tools::per_element());
  BOOST_TEST(std::string(error.what()) == "shape is [1, 2]");
}

BOOST_AUTO_TEST_CASE(frames_added_while_passing_by_are_kept) {
  try {
    try {
      throw Error(Code::cancelled, "stopped");
    } catch (Error& error) {
      error.at("node 'a'");
      throw;
    }
  } catch (const Error& error) {
    BOOST_TEST(error.full() == "node 'a': stopped");
    BOOST_TEST((error.code() == Code::cancelled));
  }
}

BOOST_AUTO_TEST_CASE(system_errors_carry_the_reason_and_the_right_code) {
  const Error missing = system_error("cannot open 'x'", ENOENT);
  BOOST_TEST(std::string(missing.what()) == "cannot open 'x': No such file or directory");
  BOOST_TEST((missing.code() == Code::not_found));
  BOOST_TEST((system_error("x", ENOMEM).code() == Code::out_of_memory));
  BOOST_TEST((system_error("x", EACCES).code() == Code::io));
}

BOOST_AUTO_TEST_CASE(codes_have_the_numbers_of_the_c_abi_and_names) {
  BOOST_TEST(static_cast<int>(Code::invalid_argument) == 1);
  BOOST_TEST(static_cast<int>(Code::internal) == 7);
  BOOST_TEST(code_name(Code::out_of_memory) == "out of memory");
  BOOST_TEST(code_name(static_cast<Code>(99)) == "unknown code");
}

BOOST_AUTO_TEST_SUITE_END()
