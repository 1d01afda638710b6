// Tests that did not test: those that were skipped are told, and one that ended without a single
// check fails its program.
#pragma once

#include <boost/test/results_collector.hpp>
#include <boost/test/tree/observer.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdio>

namespace heddle::test {

// Watches all test cases while it lives; made before Boost's unit_test_main() is called. Skips are
// those of a precondition, which is how a test says that what it is about is not there. Each is a
// line of stderr, "skipped: SUITE/CASE: WHY", which ./heddle test collects.
class CaseWatch final : public boost::unit_test::test_observer {
 public:
  CaseWatch() { boost::unit_test::framework::register_observer(*this); }
  ~CaseWatch() override { boost::unit_test::framework::deregister_observer(*this); }
  CaseWatch(const CaseWatch&) = delete;
  CaseWatch& operator=(const CaseWatch&) = delete;

  // Of the program, when Boost's was `code`.
  int exit_code(int code) const { return code == 0 && is_mute_ ? 1 : code; }

 private:
  void test_unit_skipped(const boost::unit_test::test_unit& unit,
                         boost::unit_test::const_string reason) override {
    if (reason == "disabled") return;  // by the command line
    std::fprintf(stderr, "skipped: %s: %.*s\n", unit.full_name().c_str(), int(reason.size()),
                 reason.begin());
  }
  void test_unit_finish(const boost::unit_test::test_unit& unit, unsigned long) override {
    if (unit.p_type != boost::unit_test::TUT_CASE) return;
    const boost::unit_test::test_results& results =
        boost::unit_test::results_collector.results(unit.p_id);
    if (results.p_assertions_passed != 0 || results.p_assertions_failed != 0 || results.aborted())
      return;
    std::fprintf(stderr,
                 "error: %s has checked nothing: give it a check, or a precondition that says what "
                 "it needs\n",
                 unit.full_name().c_str());
    is_mute_ = true;
  }

  bool is_mute_ = false;
};

}  // namespace heddle::test
