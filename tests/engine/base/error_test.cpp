#include "engine/base/error.h"

#include <cerrno>
#include <system_error>

#include "engine/base/thread.h"

#include <boost/test/unit_test.hpp>
#include <cerrno>

using namespace heddle::engine;

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

BOOST_AUTO_TEST_CASE(system_errors_say_what_to_do) {
  const auto says = [](int number, std::string_view advice) {
    const std::string what = system_error("x", number).what();
    BOOST_TEST(what.find(advice) != std::string::npos, what);
    BOOST_TEST(what.starts_with("x: " + std::generic_category().message(number)), what);
  };
  says(EMFILE, "ulimit -n");
  says(ENFILE, "fs.file-max");
  says(EACCES, "permissions");
  says(EISDIR, "Name a file");
  says(ENOSPC, "Free some space");
  says(EIO, "dmesg");
  says(ELOOP, "circle");
  says(ENAMETOOLONG, "shorter");
  says(EAGAIN, "ulimit -u");
}

BOOST_AUTO_TEST_CASE(a_refused_thread_says_which_limits_to_look_at) {
  struct Refused {
    Refused() { throw std::system_error(EAGAIN, std::generic_category()); }
  };
  try {
    start_thread<Refused>("the thread of a run");
    BOOST_ERROR("nothing was thrown");
  } catch (const Error& error) {
    const std::string what = error.what();
    BOOST_TEST(what.starts_with("the thread of a run: "), what);
    BOOST_TEST(what.find("pids.max") != std::string::npos, what);
    BOOST_TEST((error.code() == Code::out_of_memory));
  }
}

BOOST_AUTO_TEST_CASE(what_is_run_in_a_frame_is_told_with_it) {
  const auto fail = []() -> int { throw Error(Code::io, "gone"); };
  const auto reported = [&](std::string_view frame) -> std::string {
    try {
      framed(frame, fail);
    } catch (const Error& error) {
      return error.full();
    }
    return "";
  };
  BOOST_TEST(reported(option_frame("budgets", "gpu")) == "option budgets[gpu]: gone");
  BOOST_TEST(reported(option_frame("costs")) == "option costs: gone");
  BOOST_TEST(reported("") == "gone");
  BOOST_TEST(framed("x", [] { return 5; }) == 5);
}

BOOST_AUTO_TEST_SUITE_END()
