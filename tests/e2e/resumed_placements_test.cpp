// A picture of graphs/scene.json whose sampler is stopped at every boundary between two steps has
// the bytes of one that is not, also where weights are streamed, where the model is divided over
// devices, and where devices replay captured graphs; and so have those that go on from each of its
// checkpoints in another engine.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "engine/base/json.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

constexpr int kResumedSteps = 4;

// Where and how the sampler runs. With cpu:0 at the end all else runs there.
struct ResumedWay {
  std::vector<std::string> devices;
  std::string parallel;      // empty: as placed
  std::uint64_t budget = 0;  // of fake:0; 0: all of it
};

struct ResumedPlacement {
  test::FakeControl control;
  test::TemporaryFolder folder;
  std::vector<std::filesystem::path> checkpoints;
  int begun = 0;  // calls of the sampler, in the last run

  static std::string flow_text() {
    std::ifstream file(HEDDLE_SOURCE_DIR "/graphs/scene.json");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text = std::regex_replace(text, std::regex("\"(width|height)\": \\d+"), "\"$1\": 64");
    text = std::regex_replace(text, std::regex("\"sampler_name\": \"euler\""),
                              "\"sampler_name\": \"dpmpp_2m_sde\"");
    return std::regex_replace(text, std::regex("\"steps\": \\d+"),
                              "\"steps\": " + std::to_string(kResumedSteps));
  }
  EngineOptions options(const ResumedWay& way) const {
    EngineOptions o = test::fake_engine_options(way.devices);
    for (const std::string& device : way.devices) o.compute[device] = "f32";
    o.model_dirs = {HEDDLE_SOURCE_DIR "/graphs/models"};
    o.output_dir = folder / "output";
    o.cache_bytes = 1;
    o.reference_kernels = false;  // faster
    if (way.budget > 0) o.budgets["fake:0"] = way.budget;
    return o;
  }
  static Workflow flow(const Engine& engine, const ResumedWay& way) {
    Workflow flow = engine.parse(flow_text());
    if (!way.parallel.empty()) flow.parallel("sampler", way.parallel);
    if (way.devices.back() == "cpu:0") {
      flow.place("sampler", "fake:0");
      for (const char* node : {"prompt", "negative prompt", "size", "decode"})
        flow.place(node, "cpu:0");
    }
    return flow;
  }
  static std::vector<float> pixels(const Results& results) {
    return results.image("decode.IMAGE").pixels;
  }
  std::vector<float> whole(const ResumedWay& way) const {
    Engine engine(options(way));
    return pixels(engine.start(flow(engine, way), {.fetch = {"decode.IMAGE"}}).wait());
  }
  // Stopped before its first step and behind each, and its checkpoints kept.
  std::vector<float> in_pieces(Engine& engine, const ResumedWay& way) {
    begun = 0;
    std::atomic<Run*> under_way{nullptr};
    const auto observe = [&](const Event& event) {
      if (event.kind == Event::Kind::checkpoint_written) {
        checkpoints.push_back(folder / (std::to_string(checkpoints.size()) + ".checkpoint"));
        std::filesystem::copy_file(event.text, checkpoints.back());
      }
      if (event.node != "5") return;
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
  void check(const ResumedWay& way) {
    ResumedWay with_room = way;
    with_room.budget = 0;
    const std::vector<float> expected = whole(with_room);
    BOOST_TEST_REQUIRE(expected.size() == 64u * 64 * 3);
    Engine engine(options(way));
    BOOST_TEST((in_pieces(engine, way) == expected));
    BOOST_TEST(begun >= kResumedSteps);
    BOOST_TEST(checkpoints.size() >= std::size_t(kResumedSteps));
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
  ResumedWay way{{"fake:0", "cpu:0"}};
  {
    Engine engine(options(way));
    const engine::Json told =
        engine::parse_json(engine.plan_min_memory(flow(engine, way), true), "min-memory");
    for (const engine::Json& device : told.as_array())
      if (device.at("device").as_string() == "fake:0") {
        way.budget = device.at("min_bytes").as_uint64();
        BOOST_TEST_REQUIRE(device.at("nodes").size() == 1u);
        // With less than this weights are streamed.
        BOOST_TEST(device.at("nodes").at(0).at("all_bytes").as_uint64() > way.budget * 5 / 4);
      }
  }
  BOOST_TEST_REQUIRE(way.budget > 0u);
  check(way);
}

BOOST_AUTO_TEST_CASE(a_run_that_is_divided_over_devices_goes_on) {
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST_CONTEXT(mode) {
      checkpoints.clear();
      for (const auto& file : std::filesystem::directory_iterator(folder.path()))
        if (file.path().extension() == ".checkpoint") std::filesystem::remove(file);
      const ResumedWay way{{"fake:0", "fake:1"}, mode};
      Engine engine(options(way));
      bool is_divided = false;
      for (const PlannedCall& call : engine.planned_calls(flow(engine, way)))
        is_divided = is_divided || call.parallel == mode;
      BOOST_TEST(is_divided);
      check(way);
    }
}

BOOST_AUTO_TEST_CASE(a_run_of_captured_graphs_goes_on) {
  const ResumedWay way{{"fake:0", "cpu:0"}};
  whole(way);
  BOOST_TEST(control->replays(0) > 0u);
  check(way);
}

BOOST_AUTO_TEST_SUITE_END()
