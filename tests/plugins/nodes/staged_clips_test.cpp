// Tiles of clips through MiniMax H3's video autoencoder on several simulated devices, which are
// given them in turn: they work side by side, to the same bytes as one device.
#include <atomic>
#include <thread>

#include "tests/plugins/nodes/staged_fixture.h"
#include "tests/support/h3_files.h"

namespace heddle::test {

namespace {

struct StagedClips : StagedFixture {
  StagedClips() { add("vae/h3", h3_video_tensors(false)); }

  // Of so many clips; more: inputs of VAEDecodeTiled.
  static std::string decode(int seed, int clips, const std::string& more = "",
                            const std::string& hints = "", int width = 32) {
    const int cells = 5 * clips + 2;
    return cat(
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "h3.safetensors"}},
        "in": {"class_type": "RandomLatent", "inputs": {"width": )",
        width / 2, R"(, "height": 16, "channels": 24, "length": )", 1 + 4 * (cells - 1),
        R"(, "seed": )", seed, R"(}}, "out": {"class_type": "VAEDecode)",
        more.empty() ? "" : "Tiled", R"(", "inputs": {"vae": ["vae", 0], "samples": ["in", 0])",
        more, "}", hints,
        R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  // Of pictures of noise.
  static std::string encode(int seed, int clips, const std::string& hints = "") {
    return cat(
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "h3.safetensors"}},
        "grey": {"class_type": "EmptyImage", "inputs": {"width": 32, "height": 32, "color": 8421504, "batch_size": )",
        17 * (clips - 1) + 5,
        R"(}}, "in": {"class_type": "ImageAddNoise", "inputs": {"image": ["grey", 0], "strength": 0.5, "seed": )",
        seed,
        R"(}}, "out": {"class_type": "VAEEncode", "inputs": {"vae": ["vae", 0], "pixels": ["in", 0]})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  static constexpr const char* kTiles =
      R"(, "tile_size": 64, "overlap": 32, "temporal_size": 64, "temporal_overlap": 8)";

  // Over so many devices; least: how much faster than one they are.
  template <class Flow>
  void hold_clips(const Flow& flow, std::size_t devices, double least) const {
    Engine one(options(1));
    (void)run(one, flow(1), 1);
    const Made alone = run(one, flow(2), 1);
    Engine engine(options(devices));
    const engine::Json step = step_of(engine, flow(2));
    const std::string text = engine.plan(engine.parse(flow(2)));
    BOOST_TEST_REQUIRE(step.find("pipeline") != nullptr);
    BOOST_TEST_MESSAGE(text.substr(text.find("chunks in turn") - 8, 300));
    BOOST_TEST(text.find("chunks in turn over fake:") != std::string::npos);
    const engine::Json& pipeline = step.at("pipeline");
    BOOST_TEST(pipeline.at("devices").size() == devices);
    std::uint64_t chunks = 0;
    for (const engine::Json& device : pipeline.at("devices").as_array())
      chunks += device.at("chunks").as_uint64();
    BOOST_TEST(chunks == pipeline.at("chunks").as_uint64());
    BOOST_TEST(chunks == step.at("calls").size());
    const double planned = pipeline.at("seconds").as_double();
    (void)run(engine, flow(1), devices);
    const Made made = run(engine, flow(2), devices);
    BOOST_TEST(are_equal(made.numbers, alone.numbers), devices << " devices");
    BOOST_TEST_MESSAGE(devices << " devices: " << made.seconds << " s, alone " << alone.seconds
                               << " s; planned " << planned << " s");
    BOOST_TEST(made.seconds * least < alone.seconds);
    BOOST_TEST(made.seconds < 1.05 * planned);
    BOOST_TEST(made.seconds > 0.9 * planned);
    BOOST_TEST(made.progress == alone.progress, boost::test_tools::per_element());
    BOOST_TEST(made.heard.empty());
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(staged_clips, StagedClips)

BOOST_AUTO_TEST_CASE(devices_decode_clips_side_by_side_to_the_bytes_of_one) {
  const auto flow = [](int seed) { return decode(seed, 5); };
  hold_clips(flow, 2, 1.6);
  hold_clips(flow, 3, 2.4);
}

BOOST_AUTO_TEST_CASE(devices_decode_tiles_side_by_side_to_the_bytes_of_one) {
  hold_clips([](int seed) { return decode(seed, 2, kTiles, "", 160); }, 2, 1.8);
}

BOOST_AUTO_TEST_CASE(devices_encode_clips_side_by_side_to_the_bytes_of_one) {
  hold_clips([](int seed) { return encode(seed, 4); }, 2, 1.9);
}

BOOST_AUTO_TEST_CASE(work_that_runs_as_late_as_events_allow_makes_the_same_bytes) {
  // More rounds than are under way at a time.
  for (const std::string& flow : {decode(1, 6), encode(1, 6)}) {
    Engine alone(options(1));
    const std::vector<float> wanted = run(alone, flow, 1).numbers;
    for (int seed = 1; seed <= 2; ++seed) {
      Engine engine(options(2, cat(R"(, "shuffle": )", seed)));
      BOOST_TEST(step_of(engine, flow).find("pipeline") != nullptr);
      BOOST_TEST(are_equal(run(engine, flow, 2).numbers, wanted), "shuffled by " << seed);
    }
  }
}

// What is read is not computed once more: one device goes on with what is not.
BOOST_AUTO_TEST_CASE(where_a_device_has_no_room_one_goes_on_to_the_same_bytes) {
  for (const bool is_latent : {false, true}) {
    const std::string flow = is_latent ? encode(2, 5) : decode(2, 5);
    Engine alone(options(1));
    const std::vector<float> wanted = run(alone, flow, 1).numbers;
    std::size_t warned = 0;
    for (const std::uint64_t nth : {2, 20}) {
      Engine engine(options(2));
      bool is_begun = false;
      const Made made = run(engine, flow, 2, [&](std::size_t) {
        if (!std::exchange(is_begun, true)) control->fail_allocs(1, nth, 1 << 30);
      });
      BOOST_TEST(are_equal(made.numbers, wanted), "allocation " << nth);
      BOOST_TEST(made.progress.size() == 5u);
      BOOST_TEST(std::ranges::is_sorted(made.progress));
      for (const std::string& one : made.heard)
        BOOST_TEST(one.find("one device goes on") != std::string::npos, one);
      warned += made.heard.size();
    }
    BOOST_TEST(warned > 0u);
  }
}

// While clips are under way on both devices.
BOOST_AUTO_TEST_CASE(a_cancelled_run_leaves_the_devices_to_the_next_one) {
  const std::string flow = decode(2, 5);
  Engine alone(options(1)), engine(options(2));
  const std::vector<float> wanted = run(alone, flow, 1).numbers;
  BOOST_TEST(step_of(engine, flow).find("pipeline") != nullptr);
  Run* running = nullptr;
  std::atomic<bool> may_cancel = false;
  std::size_t told = 0;
  const auto cancel = [&](const Event& event) {
    if (event.kind != Event::Kind::node_progress || event.node != "out" || ++told != 2) return;
    while (!may_cancel) std::this_thread::yield();
    running->cancel();
  };
  Run one = engine.start(engine.parse(flow), {.observer = cancel});
  running = &one;
  may_cancel = true;
  BOOST_CHECK_EXCEPTION(one.wait(), EngineError,
                        [](const EngineError& error) { return error.code() == HEDDLE_CANCELLED; });
  BOOST_TEST(told < 5u);
  for (const std::uint32_t d : {0, 1}) BOOST_TEST(control->freed_in_use(d) == 0u);
  BOOST_TEST(are_equal(run(engine, flow, 2).numbers, wanted));
}

// With budgets of what the plan says of each device nothing lacks; what a device needs does not
// grow with the number of clips.
BOOST_AUTO_TEST_CASE(budgets_of_what_is_told_are_enough) {
  for (const bool is_latent : {false, true}) {
    const auto flow = [&](int seed, int clips = 9) {
      return is_latent ? encode(seed, clips) : decode(seed, clips);
    };
    Engine alone(options(1));
    const std::vector<float> wanted = run(alone, flow(2), 1).numbers;
    const EngineOptions plenty = narrow(2);
    EngineOptions given = plenty;
    const std::map<std::string, std::uint64_t> told = told_of(plenty, flow(1), "all_bytes"),
                                               of_more = told_of(plenty, flow(1, 18), "all_bytes");
    for (const auto& [name, bytes] : told)
      if (name != "host") given.budgets[name] = MemorySize{bytes};
    // The other device has tiles alone.
    for (const auto& [name, bytes] : told)
      if (name != "host") BOOST_TEST_MESSAGE(name << " " << bytes << ", " << of_more.at(name));
    const std::string other =
        step_of(alone, flow(1)).at("device").as_string() == "fake:0" ? "fake:1" : "fake:0";
    BOOST_TEST(told.at(other) == of_more.at(other));
    Engine engine(given);
    BOOST_TEST(step_of(engine, flow(2)).find("pipeline") != nullptr);
    (void)run(engine, flow(1), 2);
    const Made made = run(engine, flow(2), 2);
    BOOST_TEST(made.heard.empty());
    BOOST_TEST(are_equal(made.numbers, wanted), (is_latent ? "encoded" : "decoded"));
  }
}

BOOST_AUTO_TEST_CASE(a_plan_says_why_one_device_does_all) {
  const auto why = [&](const EngineOptions& given, const std::string& flow) {
    Engine engine(given);
    const engine::Json step = step_of(engine, flow);
    BOOST_TEST(step.find("pipeline") == nullptr);
    const engine::Json* const said = step.find("no_pipeline");
    return said == nullptr ? "" : said->as_string();
  };
  BOOST_TEST(why(options(2), decode(1, 4, "", R"(, "parallel": "none")")) ==
             "a hint says where it runs");
  BOOST_TEST(why(options(2), decode(1, 1)) == "there is one chunk");
  BOOST_TEST(why(options(2, R"(, "links": {"peer": {"bandwidth": 1e4, "latency": 10}})"),
                 decode(1, 4)) == "several devices would not be 2 % faster");
  EngineOptions narrower = narrow(2);
  for (const auto& [name, bytes] : told_of(narrower, decode(1, 4), "all_bytes"))
    if (name != "host") narrower.budgets[name] = MemorySize{bytes / 2};
  const std::string said = why(narrower, decode(1, 4));
  BOOST_TEST(said.find("room") != std::string::npos, said);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
