// A picture of graphs/scene.json whose sampler is stopped at every boundary between two steps has
// the bytes of one that is not, also where weights are streamed, where the model is divided over
// devices, and where devices replay captured graphs; and so have those that go on from each of its
// checkpoints in another engine.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <thread>

#include "tests/e2e/scene_runs.h"

using namespace heddle;
using test::kSceneSampler, test::kSceneSteps, test::SceneWay;

namespace {

struct ResumedPlacement : test::SceneRuns {
  std::vector<std::filesystem::path> checkpoints;
  int begun = 0;  // calls of the sampler, in the last run

  // Stopped before its first step and behind each, and its checkpoints kept.
  std::vector<float> in_pieces(Engine& engine, const SceneWay& way) {
    begun = 0;
    std::atomic<Run*> under_way{nullptr};
    const auto observe = [&](const Event& event) {
      if (event.kind == Event::Kind::checkpoint_written) {
        checkpoints.push_back(folder / (std::to_string(checkpoints.size()) + ".checkpoint"));
        std::filesystem::copy_file(event.text, checkpoints.back());
      }
      if (event.node != kSceneSampler) return;
      const bool begins = event.kind == Event::Kind::node_started;
      if (begins) ++begun;
      if (event.kind != Event::Kind::node_progress && !(begins && begun == 1)) return;
      while (under_way == nullptr) std::this_thread::yield();
      under_way.load()->pause_and_release();
      under_way.load()->resume();
    };
    StartOptions start{.observer = observe, .fetch = {"decode.IMAGE"}};
    start.checkpoint = folder / "run.checkpoint";
    Run run = engine.start(flow(engine, way), start);
    under_way = &run;
    return pixels(run.wait());
  }
  void check(const SceneWay& way) {
    const std::vector<float> expected = whole(way);
    BOOST_TEST_REQUIRE(expected.size() == 64u * 64 * 3);
    Engine engine(options(way));
    BOOST_TEST((in_pieces(engine, way) == expected));
    BOOST_TEST(begun >= kSceneSteps);
    BOOST_TEST(checkpoints.size() >= std::size_t(kSceneSteps));
    for (const std::filesystem::path& file : checkpoints) {
      Engine other(options(way));
      const Results resumed =
          other.resume(RunCheckpoint::load(file), {.fetch = {"decode.IMAGE"}}).wait();
      BOOST_TEST((pixels(resumed) == expected), file);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(resumed_placements, ResumedPlacement)

BOOST_AUTO_TEST_CASE(a_run_that_streams_weights_goes_on) {
  SceneWay way{{"fake:0", "cpu:0"}};
  const Room room = this->room(way).at("fake:0");
  BOOST_TEST_REQUIRE(room.all > room.least * 5 / 4);  // with less than this weights are streamed
  way.budgets["fake:0"] = room.least;
  check(way);
}

BOOST_AUTO_TEST_CASE(a_run_that_is_divided_over_devices_goes_on) {
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST_CONTEXT(mode) {
      checkpoints.clear();
      for (const auto& file : std::filesystem::directory_iterator(folder.path()))
        if (file.path().extension() == ".checkpoint") std::filesystem::remove(file);
      const SceneWay way{{"fake:0", "fake:1"}, mode};
      BOOST_TEST(is_divided(way));
      check(way);
    }
}

BOOST_AUTO_TEST_CASE(a_run_of_captured_graphs_goes_on, *boost::unit_test::label("long")) {
  const SceneWay way{{"fake:0", "cpu:0"}};
  whole(way);
  BOOST_TEST(control->replays(0) > 0u);
  check(way);
}

BOOST_AUTO_TEST_SUITE_END()
