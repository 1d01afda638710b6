// What a device's library has to find out about the calls of a run is asked while the run does
// other things: by the time a call begins, its kernels are known.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/layers_file.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

constexpr int kAheadWidth = 16, kAheadLayers = 5;

struct AheadFixture {
  test::FakeControl control;
  test::TemporaryFolder folder;

  AheadFixture() {
    folder.write("a.safetensors", test::LayersFile{"a", kAheadWidth, kAheadLayers}.bytes());
  }
  std::string flow() const {
    const std::string path = (folder / "a.safetensors").string();
    return test::workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"loop", R"({"class_type": "test.planned_loop", "inputs": {"model": ["load", 0], )"
                  R"("width": 16, "steps": 2, "start": 1}})"},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(kernels_ahead, AheadFixture)

BOOST_AUTO_TEST_CASE(kernels_of_a_call_are_asked_for_before_it_begins) {
  Engine engine(test::fake_engine_options({"fake:0"}));
  const Workflow workflow = engine.parse(flow());
  std::promise<void> begun;
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  Run run = engine.start(workflow, {.observer = [&](const Event& e) {
                           if (e.kind != Event::Kind::node_started || e.node != "loop") return;
                           begun.set_value();
                           opened.wait_for(std::chrono::minutes(2));
                         }});
  test::given(begun.get_future(), "the begin of the loop");
  // Its node is held back, so that nobody else asks.
  BOOST_TEST_REQUIRE(test::comes_about([&] { return control->questions(0) > 0; }),
                     "nobody asks for kernels");
  BOOST_TEST(control->launches(0, nullptr) == 0u);
  gate.set_value();
  run.wait();
  BOOST_TEST(control->launches(0, "linear/1") == std::uint64_t(2 * kAheadLayers));
}

BOOST_AUTO_TEST_CASE(a_run_that_fails_meanwhile_ends_as_it_would) {
  Engine engine(test::fake_engine_options({"fake:0"}));
  const Workflow workflow = engine.parse(flow());
  control->fail_launch(0, 1);
  Run run = engine.start(workflow, {});
  BOOST_CHECK_THROW(run.wait(), EngineError);
}

BOOST_AUTO_TEST_SUITE_END()
