// Runs that an observer starts, and waits for, while its own run goes no further.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <optional>

#include "tests/support/engine_fixture.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

BOOST_AUTO_TEST_SUITE(nested_runs)

BOOST_AUTO_TEST_CASE(an_observer_may_wait_for_a_run_of_the_node_that_it_is_told_of) {
  const test::TemporaryFolder folder;
  const test::LayersFile model{"model", 24, 3};
  const std::string path = folder.write("model.safetensors", model.bytes()).string();
  const std::string flow = test::workflow(
      {{"load", (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
       {"x", R"({"class_type": "test.ramp", "inputs": {"count": 24, "start": 1}})"},
       {"loop", R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0]}})"},
       {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  Engine engine(test::engine_options());
  std::optional<Run> inner;
  bool is_over = false;
  const auto observe = [&](const Event& event) {
    if (event.kind != Event::Kind::node_started || event.node != "loop" || inner) return;
    inner.emplace(engine.start(engine.parse(flow), {.fetch = {"keep.out"}}));
    is_over = inner->wait_for(std::chrono::seconds(60));
    if (!is_over) inner->cancel();
  };
  Run outer = engine.start(engine.parse(flow), {.observer = observe, .fetch = {"keep.out"}});
  BOOST_TEST(model.gives(outer.wait().floats("keep.out"), 1));
  BOOST_TEST_REQUIRE(is_over);
  BOOST_TEST(model.gives(inner->wait().floats("keep.out"), 1));
}

BOOST_AUTO_TEST_SUITE_END()
