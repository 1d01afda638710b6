// A picture of graphs/scene.json whose run gives the devices up to two runs of a higher priority,
// each of a picture of its own, has the bytes of one that had them throughout, and so have theirs:
// where weights are streamed, where the model is divided over devices, and where devices replay
// captured graphs.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/e2e/scene_runs.h"

using namespace heddle;
using test::kSceneSampler, test::kSceneSteps, test::SceneWay;

namespace {

struct PreemptedPlacement : test::SceneRuns {
  // What a run tells of its sampler, which stands still behind the steps that it may take.
  struct Sampler {
    std::atomic<int> begun{0}, steps{0}, may_take{kSceneSteps};

    Observer observer() {
      return [this](const Event& event) {
        if (event.node != kSceneSampler) return;
        if (event.kind == Event::Kind::node_started) ++begun;
        if (event.kind != Event::Kind::node_progress) return;
        ++steps;
        while (steps >= may_take && may_take < kSceneSteps) std::this_thread::yield();
      };
    }
    void await(int step) const {
      while (steps < step) std::this_thread::yield();
    }
  };

  static int seed_of(int priority) { return 100 + priority; }
  // By priority, made on one device: no way may give others.
  const std::vector<std::vector<float>>& pictures() const {
    static const std::vector<std::vector<float>> made = [this] {
      const SceneWay one{{"fake:0", "cpu:0"}};
      return std::vector{whole(one), whole(one, seed_of(1)), whole(one, seed_of(2))};
    }();
    return made;
  }
  static Run begin(Engine& engine, const SceneWay& way, Sampler& sampler, int priority) {
    Workflow scene = flow(engine, way);
    if (priority > 0) scene.set("sampler.seed", std::to_string(seed_of(priority)));
    return engine.start(
        scene, {.observer = sampler.observer(), .fetch = {"decode.IMAGE"}, .priority = priority});
  }
  void check(const SceneWay& way) {
    BOOST_TEST_REQUIRE(pictures()[0].size() == 64u * 64 * 3);
    BOOST_TEST((pictures()[0] != pictures()[1] && pictures()[1] != pictures()[2]));
    Engine engine(options(way));
    Sampler low, high, higher;
    low.may_take = 1;
    Run one = begin(engine, way, low, 0);
    low.await(1);
    Run two = begin(engine, way, high, 1);
    low.may_take = 3;
    BOOST_TEST((pixels(two.wait()) == pictures()[1]));
    low.await(3);
    Run three = begin(engine, way, higher, 2);
    low.may_take = kSceneSteps;
    BOOST_TEST((pixels(three.wait()) == pictures()[2]));
    BOOST_TEST((pixels(one.wait()) == pictures()[0]));
    BOOST_TEST(low.begun == 3);            // it gave way to both
    BOOST_TEST(low.steps == kSceneSteps);  // and took no step twice
    BOOST_TEST(high.begun == 1);
    BOOST_TEST(higher.begun == 1);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(preempted_placements, PreemptedPlacement)

BOOST_AUTO_TEST_CASE(a_preempted_run_that_streams_weights_goes_on) {
  SceneWay way{{"fake:0", "cpu:0"}};
  const Room room = this->room(way).at("fake:0");
  BOOST_TEST_REQUIRE(room.all > room.least * 5 / 4);  // with less than this weights are streamed
  way.budgets["fake:0"] = room.least;
  check(way);
}

BOOST_AUTO_TEST_CASE(a_preempted_run_that_is_divided_over_devices_goes_on) {
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST_CONTEXT(mode) {
      SceneWay way{{"fake:0", "fake:1"}, mode};
      BOOST_TEST(is_divided(way));
      for (const auto& [device, room] : room(way)) way.budgets[device] = room.all;
      BOOST_TEST(way.budgets.size() == 2u);
      BOOST_TEST(is_divided(way));
      check(way);
    }
}

BOOST_AUTO_TEST_CASE(a_preempted_run_of_captured_graphs_goes_on) {
  SceneWay way{{"fake:0", "cpu:0"}};
  way.budgets["fake:0"] = room(way).at("fake:0").all;
  const std::uint64_t before = control->replays(0);
  check(way);
  BOOST_TEST(control->replays(0) > before);
}

BOOST_AUTO_TEST_SUITE_END()
