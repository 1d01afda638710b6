// An isolated node that harms its worker's end of the protocol: the engine ends the worker and the
// run, says whose it was, and goes on.
#include <sys/prctl.h>

#include <boost/test/data/test_case.hpp>
#include <csignal>

#include "engine/isolate/worker_process.h"
#include "tests/engine/isolate/isolated_fixture.h"

using namespace heddle;
using test::child_processes;
using test::engine_refusal;
using test::open_descriptors;
using test::run_text;

BOOST_AUTO_TEST_SUITE(hostile)

namespace {

std::string flow_of(const std::string& how) {
  return R"({"hostile": {"class_type": "test.hostile", "inputs": {"how": ")" + how +
         R"("}}, "keep": {"class_type": "test.keep", "inputs": {"value": ["hostile", 0]}}})";
}

EngineOptions hostile_options(double seconds = 0) {
  EngineOptions options = test::isolated_options({"sample_hostile"});
  options.isolation.call_seconds = seconds;
  return options;
}

void check_told(const std::string& error, const std::string& part) {
  BOOST_TEST_CONTEXT(error) {
    BOOST_TEST((error.find(part) != std::string::npos));
    BOOST_TEST((error.find("'org.heddle.tests.hostile'") != std::string::npos));
    BOOST_TEST((error.find("'test.hostile'") != std::string::npos));
  }
}

struct Way {
  const char* how;
  const char* told;
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.how; }

// The engine notices these without a limit of time.
const Way kWrong[] = {
    {"absent item", "has an item without a value"},
    {"absent field", "has an item without a value"},
    {"absent input", "the input 'value' no value"},
    {"many items", "more than 4194304 parts"},
    {"elements missing", "0 bytes for f32 (268435456)"},
    {"outside of memory", "at byte 4096 of memory of 32768 bytes"},
    {"foreign memory", "memory 123456, which it does not have"},
    {"memory of a device", "memory 123456 of a device, which it does not have"},
    {"host memory as a device's", "of a device, which it does not have"},
    {"many outputs", "gives 3 outputs"},
    {"cut off", "is cut off"},
    {"preview", "is to have three for each pixel"},
    {"long header", "sends a message of 1099511627776 bytes"},
    {"unknown kind", "unknown kind 999"},
    {"a call back", "unknown kind 0"},
    {"defers twice", "defers a call twice"},
    {"two results", "behind the result"},
};

const char* const kHanging[] = {"promise", "drop by drop", "asks on and on"};

}  // namespace

BOOST_DATA_TEST_CASE(what_no_worker_says_ends_it, boost::unit_test::data::make(kWrong), way) {
  Engine engine(hostile_options());
  check_told(engine_refusal([&] { run_text(engine, flow_of(way.how)); }), way.told);
  BOOST_TEST(run_text(engine, flow_of("")) == "1.5");
}

BOOST_DATA_TEST_CASE(who_never_comes_to_an_end_is_late, boost::unit_test::data::make(kHanging),
                     how) {
  Engine engine(hostile_options(1));
  check_told(engine_refusal([&] { run_text(engine, flow_of(how)); }), "has not ended within 1 s");
}

BOOST_AUTO_TEST_CASE(the_engine_takes_no_descriptors) {
  Engine engine(hostile_options());
  BOOST_TEST(run_text(engine, flow_of("")) == "1.5");
  const std::size_t descriptors = open_descriptors();
  BOOST_TEST(run_text(engine, flow_of("descriptors")) == "1.5");
  BOOST_TEST(open_descriptors() == descriptors);
}

BOOST_AUTO_TEST_CASE(memory_that_nobody_has_is_refused) {
  Engine engine(hostile_options());
  BOOST_TEST(run_text(engine, flow_of("memory")) == "1.5");
}

BOOST_AUTO_TEST_CASE(what_is_too_long_fails_the_call_alone) {
  Engine engine(hostile_options());
  const std::string error = engine_refusal([&] { run_text(engine, flow_of("long text")); });
  BOOST_TEST_CONTEXT(error) BOOST_TEST((error.find("cross from a worker") != std::string::npos));
}

// A process that the node has started keeps the worker's sockets: the crash is noticed, and it goes
// with the worker. This process adopts it, as the first one of a container does, and waits for it.
BOOST_AUTO_TEST_CASE(what_a_worker_has_started_goes_with_it) {
  BOOST_TEST_REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  Engine engine(hostile_options());
  std::string child;
  StartOptions start;
  start.observer = [&](const heddle::Event& event) {
    if (event.kind == heddle::Event::Kind::warning) child = event.text;
  };
  check_told(engine_refusal(
                 [&] { engine.start(engine.parse(flow_of("child")), std::move(start)).wait(); }),
             "SIGABRT");
  BOOST_TEST_REQUIRE(child.find_first_not_of("0123456789") == std::string::npos);
  BOOST_TEST_REQUIRE(!child.empty());
  // Not even as a zombie.
  BOOST_TEST(!std::filesystem::exists("/proc/" + child));
  BOOST_TEST(::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
