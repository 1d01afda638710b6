// Chunks whose stages are on several simulated devices, where memory is short: budgets are held to,
// and where a device has no room one goes on, to the same bytes.
#include "tests/plugins/nodes/staged_fixture.h"

namespace heddle::test {

namespace {

constexpr std::uint64_t kAll = 1 << 30;  // allocations from one on

struct FallbackFixture : StagedFixture {
  static constexpr std::uint64_t kMemory = 64 << 20;

  EngineOptions in_little() const {
    EngineOptions options = narrow(2);
    options.device_options["fake"] = cat("{", kSlow, R"(, "memory": )", kMemory, "}");
    return options;
  }
  // As another program does; until the control's reset(). is_seen: the device says so, too.
  void take_all(std::uint32_t device, bool is_seen) const {
    if (is_seen) control->set_foreign_bytes(device, kMemory);
    control->fail_allocs(device, 1, kAll);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(staged_fallback, FallbackFixture)

// With budgets of what the plan says of each device, of the weights of all other stages, and of the
// chunks that pools take at a time, nothing lacks and no session streams; with half of the first
// alone one device does all from the start.
BOOST_AUTO_TEST_CASE(budgets_of_what_is_told_are_enough) {
  constexpr int kFew = 5;
  Engine alone(options(1));
  (void)run(alone, decode(1, kFew), 1);
  const std::vector<float> wanted = run(alone, decode(2, kFew), 1).numbers;
  const EngineOptions plenty = narrow(2);
  const std::map<std::string, std::uint64_t> told = told_of(plenty, decode(1, kFew), "all_bytes");
  std::map<std::string, std::uint64_t> weights;
  {
    Engine engine(plenty);
    (void)run(engine, decode(1, kFew), 2);
    for (const std::uint32_t d : {0u, 1u})
      weights[cat("fake:", d)] = control->bytes_copied(HEDDLE_FAKE_HOST, d);
  }
  for (const bool is_enough : {true, false}) {
    EngineOptions given = plenty;
    for (const auto& [name, bytes] : told)
      given.budgets[name] = MemorySize{is_enough ? bytes + weights.at(name) : bytes / 2};
    Engine engine(given);
    const bool is_staged = step_of(engine, decode(1, kFew)).find("pipeline") != nullptr;
    BOOST_TEST(is_staged == is_enough);
    if (!is_enough) continue;
    (void)run(engine, decode(1, kFew), 2);
    const Made made = run(engine, decode(2, kFew), 2);
    for (const std::uint32_t d : {0u, 1u}) BOOST_TEST(control->weights(d) == 0u);  // all stayed
    BOOST_TEST(made.heard.empty());
    BOOST_TEST(are_equal(made.numbers, wanted));
  }
}

// Stages take more on some device than one device takes alone: then there are none, and nothing is
// refused.
BOOST_AUTO_TEST_CASE(a_budget_for_one_device_alone_is_enough) {
  const std::pair<std::string, std::size_t> flows[] = {{encode(1), 4}, {decode(1), 2}};
  for (const auto& [flow, devices] : flows) {
    Engine alone(options(1));
    const std::vector<float> wanted = run(alone, flow, 1).numbers;
    const std::uint64_t least = told_of(narrow(1), flow, "min_bytes").at("fake:0");
    std::uint64_t staged = 0;
    for (const auto& [name, bytes] : told_of(narrow(devices), flow, "min_bytes"))
      if (name != "host") staged = std::max(staged, bytes);
    BOOST_TEST_REQUIRE(least < staged);
    for (const std::uint64_t budget : {least, (least + staged) / 2, staged - 1}) {
      EngineOptions given = narrow(devices);
      for (std::size_t d = 0; d < devices; ++d) given.budgets[cat("fake:", d)] = MemorySize{budget};
      Engine engine(given);
      const Made made = run(engine, flow, devices);
      BOOST_TEST(made.heard.empty());
      BOOST_TEST(are_equal(made.numbers, wanted), "a budget of " << budget);
    }
  }
}

BOOST_AUTO_TEST_CASE(where_a_device_has_no_room_one_goes_on_to_the_same_bytes) {
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(2), 1).numbers;
  int warned = 0;
  for (const std::uint64_t nth : {1, 2, 5, 20}) {
    Engine engine(options(2));
    control->reset();
    control->fail_allocs(1, nth, kAll);
    std::vector<double> progress;
    std::vector<std::string> warnings;
    const auto observe = [&](const Event& event) {
      if (event.node != "out") return;
      if (event.kind == Event::Kind::node_progress) progress.push_back(event.fraction);
      if (event.kind == Event::Kind::warning) warnings.emplace_back(event.text);
    };
    const std::vector<float> made =
        engine.start(engine.parse(decode(2)), {.observer = observe, .fetch = {"out.IMAGE"}})
            .wait()
            .floats("out.IMAGE");
    BOOST_TEST(are_equal(made, wanted), "allocation " << nth);
    BOOST_TEST(progress.size() == std::size_t(kChunks));
    BOOST_TEST(std::ranges::is_sorted(progress));
    for (const std::string& warning : warnings) {
      BOOST_TEST(warning.find("one device goes on") != std::string::npos, warning);
      ++warned;
    }
  }
  BOOST_TEST(warned > 0);
}

// Also where the clip is begun again on one device in the middle of it, as when another program
// takes memory: what has been read is not read again.
BOOST_AUTO_TEST_CASE(who_reads_frames_as_they_come_gets_each_once) {
  constexpr int kFew = 6;
  constexpr std::size_t kRead = 2;
  const std::filesystem::path told = folder / "told";
  std::string flow = decode(1, kFew);
  flow.back() = ',';
  flow += cat(
      R"("follow": {"class_type": "test.follow_rows", "inputs": {"rows": ["out", 0], "path": ")",
      told.string(), R"("}}})");
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode(1, kFew), 1).numbers;
  for (const bool is_short : {false, true}) {
    std::filesystem::remove(told);
    Engine engine(in_little());
    const Made made = run(engine, flow, 2, [&](std::size_t chunks) {
      if (is_short && chunks == kRead) take_all(1, true);
    });
    BOOST_TEST(std::filesystem::file_size(told) == std::size_t(1 + 4 * (kFew - 1)));
    BOOST_TEST(made.progress.size() == std::size_t(kFew));
    BOOST_TEST(std::ranges::is_sorted(made.progress));
    BOOST_TEST(are_equal(made.numbers, wanted), (is_short ? "with" : "without") << " a fault");
    BOOST_TEST_REQUIRE(made.heard.size() == std::size_t(is_short ? 1 : 0));
    if (is_short)
      BOOST_TEST(made.heard[0].find("one device goes on") != std::string::npos, made.heard[0]);
  }
}

// The calls that come behind are no longer those of the plan: one device does them all, and nobody
// is told once more.
BOOST_AUTO_TEST_CASE(one_device_goes_on_with_all_tiles_and_videos) {
  for (const bool in_tiles : {true, false}) {
    const std::string flow =
        in_tiles
            ? decode_by(
                  "VAEDecodeTiled", 2, 5, 1,
                  R"(, "tile_size": 64, "overlap": 0, "temporal_size": 8, "temporal_overlap": 4)")
            : decode_by("VAEDecode", 2, 3, 3, "");
    Engine alone(options(1));
    const std::vector<float> wanted = run(alone, flow, 1).numbers;
    for (const std::size_t begin : {0, 1}) {
      control->reset();
      Engine engine(in_little());
      BOOST_TEST_REQUIRE((step_of(engine, flow).find("pipeline") != nullptr));
      const Made made = run(engine, flow, 2, [&](std::size_t chunks) {
        if (chunks == begin) take_all(1, begin > 0);
      });
      BOOST_TEST(are_equal(made.numbers, wanted), "in memory that is taken at " << begin);
      BOOST_TEST(made.heard.size() == 1u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
