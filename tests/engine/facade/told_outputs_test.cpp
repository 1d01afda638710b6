// What nodes say in infer(): refusals before a run, and the debug mode that holds the rest against
// what they make.
#include "engine/facade/told_outputs.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "tests/support/engine_fixture.h"

using namespace heddle;
using test::engine_refusal;
using test::workflow;

namespace {

std::string told_flow(const char* told) {
  return workflow(
      {{"1", told}, {"2", R"({"class_type": "test.keep", "inputs": {"value": ["1", 0]}})"}});
}
const std::string kRight = told_flow(R"({"class_type": "test.told", "inputs": {}})"),
                  kWrong =
                      told_flow(R"({"class_type": "test.told", "inputs": {"made": 5, "told": 7}})"),
                  kLittle =
                      told_flow(R"({"class_type": "test.told", "inputs": {"made": 5, "told": 0}})"),
                  kRefused = told_flow(
                      R"({"class_type": "test.told", "inputs": {"made": 5, "told": 101}})");

// With the debug mode, or without it.
struct Checked {
  explicit Checked(bool on) { ::setenv("HEDDLE_CHECK_INFER", on ? "1" : "0", 1); }
  ~Checked() { ::unsetenv("HEDDLE_CHECK_INFER"); }
};

struct ToldFixture {
  Engine engine{test::engine_options()};

  std::string failure(const std::string& flow) {
    return engine_refusal([&] { engine.start(engine.parse(flow)).wait(); });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(told_outputs, ToldFixture)

BOOST_AUTO_TEST_CASE(a_check_finds_what_infer_refuses) {
  const Engine::Problems problems = engine.check(engine.parse(kRefused));
  const std::string refusal = "node '1' (test.told): 101 elements are over 100";
  BOOST_TEST(problems.errors == std::vector<std::string>{refusal},
             boost::test_tools::per_element());
  BOOST_TEST(problems.outputs.empty());
  BOOST_TEST(problems.answer.find(R"("type":"prompt_outputs_failed_validation")") !=
             std::string::npos);
  BOOST_TEST(problems.answer.find(refusal) != std::string::npos);
  BOOST_TEST(engine_refusal([&] { engine.start(engine.parse(kRefused)); }) == refusal);
  for (const std::string& flow : {kRight, kWrong, kLittle}) {
    const Engine::Problems none = engine.check(engine.parse(flow));
    BOOST_TEST(none.errors.empty());
    BOOST_TEST(none.outputs == std::vector<std::string>{"2"}, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(the_debug_mode_fails_a_run_that_makes_other_outputs_than_were_told) {
  const Checked checked(true);
  BOOST_TEST(failure(kRight) == "");
  BOOST_TEST(failure(kLittle) == "");
  BOOST_TEST(failure(kWrong) ==
             "node '1' (test.told), output 'out': infer() told f32 (7), execute() made f32 (5)\n"
             "node '1' (test.told), output 'count': infer() told 7, execute() made 5\n"
             "Plans go by what infer() tells. Mend it, or tell less.");
}

BOOST_AUTO_TEST_CASE(nothing_is_compared_unless_it_is_asked_for) {
  const Checked checked(false);
  BOOST_TEST(failure(kWrong) == "");
}

BOOST_AUTO_TEST_SUITE_END()
