// Clips through autoencoders of LTX that look ahead, or do not, with the stages of a piece on
// several simulated devices: they work side by side, to the same bytes as one device.
#include "tests/plugins/nodes/ltxv_pieces_fixture.h"

namespace heddle::test {

namespace {

struct StagedPieces : LtxvPieces {
  static constexpr int kCells = 14;

  static std::string decode(const std::string& version, int seed, int cells = kCells,
                            const std::string& hints = "") {
    return flow(
        version, "VAEDecode",
        cat(R"({"class_type": "RandomLatent", "inputs": {"width": 16, "height": 16, "channels": )",
            version == "0.9.0" ? 128 : 8, R"(, "length": )", 1 + 4 * (cells - 1), R"(, "seed": )",
            seed, "}}"),
        R"("samples": ["in", 0])", hints);
  }
  // Of pictures of noise.
  static std::string encode(const std::string& version, int seed, const std::string& hints = "") {
    return flow(
        version, "VAEEncode",
        cat(R"({"class_type": "ImageAddNoise", "inputs": {"image": ["grey", 0], "strength": 0.5, "seed": )",
            seed, R"(}},
        "grey": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 32, "batch_size": 57, "color": 8421504}})"),
        R"("pixels": ["in", 0])", hints);
  }
  // A pipeline over so many devices; `least`: how much faster than one device they are.
  template <class Flow>
  void hold_pieces(const Flow& flow, std::size_t devices, double least) const {
    Engine one(options(1));
    (void)run(one, flow(1), 1);
    const Made alone = run(one, flow(2), 1);
    Engine engine(options(devices));
    const engine::Json step = step_of(engine, flow(2));
    const std::string text = engine.plan(engine.parse(flow(2)));
    BOOST_TEST_MESSAGE(text.substr(text.find("chunks in a pipeline") - 8, 400));
    BOOST_TEST_REQUIRE(step.find("pipeline") != nullptr);
    BOOST_TEST(step.at("pipeline").at("devices").size() == devices);
    const double planned = step.at("pipeline").at("seconds").as_double();
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

BOOST_FIXTURE_TEST_SUITE(staged_pieces, StagedPieces)

// "0.9.1" looks ahead, and draws noise in its residual blocks; "2.3" is causal.
BOOST_AUTO_TEST_CASE(devices_decode_pieces_side_by_side_to_the_bytes_of_one) {
  for (const char* version : {"0.9.1", "2.3"})
    hold_pieces([&](int seed) { return decode(version, seed); }, 2, 1.25);
}

BOOST_AUTO_TEST_CASE(devices_encode_pieces_side_by_side_to_the_bytes_of_one) {
  hold_pieces([](int seed) { return encode("2", seed); }, 2, 1.6);
  hold_pieces([](int seed) { return encode("2", seed); }, 3, 1.9);
}

BOOST_AUTO_TEST_CASE(work_that_runs_as_late_as_events_allow_makes_the_same_bytes) {
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode("0.9.1", 1), 1).numbers;
  for (int seed = 1; seed <= 2; ++seed) {
    Engine engine(options(3, cat(R"(, "shuffle": )", seed)));
    BOOST_TEST(step_of(engine, decode("0.9.1", 1)).find("pipeline") != nullptr);
    BOOST_TEST(are_equal(run(engine, decode("0.9.1", 1), 3).numbers, wanted),
               "shuffled by " << seed);
  }
}

BOOST_AUTO_TEST_CASE(where_a_device_has_no_room_one_goes_on_to_the_same_bytes) {
  Engine alone(options(1));
  const std::vector<float> wanted = run(alone, decode("0.9.1", 2), 1).numbers;
  std::size_t warned = 0;
  for (const std::uint64_t nth : {2, 20}) {
    Engine engine(options(2));
    bool is_begun = false;
    const Made made = run(engine, decode("0.9.1", 2), 2, [&](std::size_t) {
      if (!std::exchange(is_begun, true)) control->fail_allocs(1, nth, 1 << 30);
    });
    BOOST_TEST(are_equal(made.numbers, wanted), "allocation " << nth);
    BOOST_TEST(std::ranges::is_sorted(made.progress));
    for (const std::string& one : made.heard)
      BOOST_TEST(one.find("one device goes on") != std::string::npos, one);
    warned += made.heard.size();
  }
  BOOST_TEST(warned > 0u);
}

// With budgets of what the plan says of each device and of the weights nothing lacks.
BOOST_AUTO_TEST_CASE(budgets_of_what_is_told_are_enough) {
  for (const bool is_latent : {false, true}) {
    const auto flow = [&](int seed) { return is_latent ? encode("2", seed) : decode("2", seed); };
    Engine alone(options(1));
    const std::vector<float> wanted = run(alone, flow(2), 1).numbers;
    const EngineOptions plenty = narrow(2);
    EngineOptions given = plenty;
    {
      Engine engine(plenty);
      (void)run(engine, flow(1), 2);
      for (const auto& [name, bytes] : told_of(plenty, flow(1), "all_bytes"))
        if (name != "host")
          given.budgets[name] =
              MemorySize{bytes + control->bytes_copied(HEDDLE_FAKE_HOST, name == "fake:0" ? 0 : 1)};
    }
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
    const std::string text = said == nullptr ? "" : said->as_string();
    BOOST_TEST(engine.plan(engine.parse(flow)).find(cat("chunks one after another on fake:")) !=
               std::string::npos);
    return text;
  };
  BOOST_TEST(why(options(2), decode("2", 1, kCells, R"(, "parallel": "none")")) ==
             "a hint says where it runs");
  BOOST_TEST(why(options(2, R"(, "links": {"peer": {"bandwidth": 1e4, "latency": 1}})"),
                 decode("2", 1)) == "several devices would not be 2 % faster");
  EngineOptions narrower = narrow(2);
  for (const auto& [name, bytes] : told_of(narrower, decode("2", 1), "all_bytes"))
    if (name != "host") narrower.budgets[name] = MemorySize{bytes / 2};
  Engine engine(narrower);
  BOOST_TEST(step_of(engine, decode("2", 1)).find("pipeline") == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
