// VAEDecode and VAEEncode of videos over a tiny autoencoder of Wan 2.1 whose weights follow from
// their names, against what diffusers makes of the same ones (../goldens/make_wan_vae_goldens.py).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct VideoVaeFixture : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_vae/expected.safetensors";
  TensorFile expected{golden};
  static constexpr const char* kClips[] = {"1.wide.",  "5.wide.", "9.wide.",
                                           "13.wide.", "1.tall.", "9.tall."};

  VideoVaeFixture() {
    add("vae/wan_2.1_vae", seeded_model("vae", false, "wan_vae"));
    add("vae/wan_diffusers", seeded_model("vae", true, "wan_vae"));
  }

  // "out" of "in", by the autoencoder of that file; more: of its inputs, hints: of its node.
  std::string flow(const std::string& type, const std::string& in, const std::string& more = "",
                   const std::string& hints = "", const std::string& file = "wan_2.1_vae") const {
    return cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")", file,
               R"(.safetensors"}}, "in": )", in, R"(, "out": {"class_type": ")", type,
               R"(", "inputs": {"vae": ["vae", 0])", more, "}", hints, "}, ", kLook, "}");
  }
  std::string given(const char* type, const std::string& name) const {
    return cat(R"({"class_type": ")", type, R"(", "inputs": {"path": ")", golden.string(),
               R"(", "name": ")", name, R"("}})");
  }
  std::string decode(const std::string& clip, const std::string& hints = "",
                     const std::string& file = "wan_2.1_vae") const {
    return flow("VAEDecode", given("test.latent", clip + "latent"), R"(, "samples": ["in", 0])",
                hints, file);
  }
  std::string encode(const std::string& clip, const std::string& hints = "",
                     const std::string& file = "wan_2.1_vae") const {
    return flow("VAEEncode", given("test.image", clip + "frames"), R"(, "pixels": ["in", 0])",
                hints, file);
  }
  std::vector<float> clamped(const std::string& name) const {
    std::vector<float> numbers = expected.floats(name);
    for (float& number : numbers) number = std::clamp(number, 0.0f, 1.0f);
    return numbers;
  }
  static double decibels(const std::vector<float>& a, const std::vector<float>& b) {
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(double(a[i]) - b[i], 2);
    return -10 * std::log10(squares / double(a.size()));
  }
  static void hold(const std::vector<float>& made, const std::vector<float>& wanted,
                   const std::string& what) {
    const double error = relative_error(made, wanted);
    BOOST_TEST_MESSAGE(what << ": relative error " << error << ", " << decibels(made, wanted)
                            << " dB");
    BOOST_TEST(error < kVideoTolerance, what << ": relative error " << error);
    BOOST_TEST(decibels(made, wanted) > 90, what << ": " << decibels(made, wanted) << " dB");
  }
  // Some twenty convolutions in f32.
  static constexpr double kVideoTolerance = 5e-6;

  static std::vector<float> floats_of(Engine& engine, const std::string& flow, bool is_latent) {
    const std::string output = is_latent ? "out.LATENT" : "out.IMAGE";
    return engine.start(engine.parse(flow), {{}, {output}})
        .wait()
        .floats(output, is_latent ? "samples" : "");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(video_vae, VideoVaeFixture)

BOOST_AUTO_TEST_CASE(frames_of_latents_equal_those_of_diffusers_under_both_names) {
  for (const std::string clip : kClips)
    for (const char* file : {"wan_2.1_vae", "wan_diffusers"}) {
      const heddle::Results results = run_whole(decode(clip, "", file), {"out.IMAGE"});
      hold(results.floats("out.IMAGE"), clamped(clip + "decoded"), clip + file);
      const std::vector<std::int64_t> shape = results.shape("out.IMAGE");
      BOOST_TEST(shape == expected.at(clip + "decoded").shape, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_batch_of_pictures_is_a_video_whose_latent_equals_that_of_diffusers) {
  for (const std::string clip : kClips)
    for (const char* file : {"wan_2.1_vae", "wan_diffusers"}) {
      const heddle::Results results = run_whole(encode(clip, "", file), {"out.LATENT"});
      hold(results.floats("out.LATENT", "samples"), expected.floats(clip + "mean"), clip + file);
      if (clip.starts_with("1.")) continue;  // a picture's has no axis of frames
      const std::vector<std::int64_t> shape = results.shape("out.LATENT", "samples");
      BOOST_TEST(shape == expected.at(clip + "mean").shape, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_latent_in_the_units_of_the_diffusion_model_is_decoded) {
  const std::string both = cat(
      R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}}, "in": )",
      given("test.image", "9.wide.frames"),
      R"(, "latent": {"class_type": "VAEEncode", "inputs": {"pixels": ["in", 0], "vae": ["vae", 0]}},
      "out": {"class_type": "VAEDecode", "inputs": {"samples": ["latent", 0], "vae": ["vae", 0]}}, )",
      kLook, "}");
  hold(run_whole(both, {"out.IMAGE"}).floats("out.IMAGE"), clamped("9.wide.again"), "again");
}

BOOST_AUTO_TEST_CASE(frames_that_make_no_whole_one_of_the_latent_are_left_out) {
  const std::string seven = cat(
      R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}}, "in": )",
      given("test.image", "9.wide.frames"),
      R"(, "some": {"class_type": "ImageFromBatch", "inputs": {"image": ["in", 0], "batch_index": 0, "length": 7}},
      "out": {"class_type": "VAEEncode", "inputs": {"pixels": ["some", 0], "vae": ["vae", 0]}}, )",
      kLook, "}");
  const heddle::Results results = run_whole(seven, {"out.LATENT"});
  BOOST_TEST(results.shape("out.LATENT", "samples") == (std::vector<std::int64_t>{1, 16, 2, 2, 3}),
             boost::test_tools::per_element());
  // The video is causal: what comes later changes nothing of what is before.
  const std::vector<float> all = expected.floats("9.wide.mean"),
                           made = results.floats("out.LATENT", "samples");
  for (std::size_t c = 0; c < 16; ++c)
    for (std::size_t i = 0; i < 12; ++i)
      BOOST_TEST_REQUIRE(std::abs(made[12 * c + i] - all[18 * c + i]) < 1e-4f);
}

BOOST_AUTO_TEST_CASE(tiles_of_frames_rows_and_columns_are_put_together_as_comfyui_does,
                     *boost::unit_test::label("long")) {
  const std::string tiles =
      R"(, "tile_size": 64, "overlap": 32, "temporal_size": 8, "temporal_overlap": 4}})";
  const std::string both = cat(
      R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}}, "in": )",
      given("test.latent", "tiled.latent"),
      R"(, "frames": {"class_type": "VAEDecodeTiled", "inputs": {"samples": ["in", 0], "vae": ["vae", 0])",
      tiles,
      R"(, "out": {"class_type": "VAEEncodeTiled", "inputs": {"pixels": ["frames", 0], "vae": ["vae", 0])",
      tiles, ", ", kLook, "}");
  const heddle::Results results = run_whole(both, {"frames.IMAGE", "out.LATENT"});
  const std::vector<float> frames = results.floats("frames.IMAGE");
  BOOST_TEST_REQUIRE(frames.size() == std::size_t(13 * 80 * 72 * 3));
  std::vector<float> some;
  for (std::size_t row = 0; row < 13 * 80; row += 4)
    for (std::size_t column = 0; column < 72; column += 4)
      for (std::size_t c = 0; c < 3; ++c) some.push_back(frames[(row * 72 + column) * 3 + c]);
  hold(some, expected.floats("tiled.decoded"), "decoded");
  hold(results.floats("out.LATENT", "samples"), expected.floats("tiled.mean"), "encoded");
}

BOOST_AUTO_TEST_CASE(chunks_are_told_as_they_are_run, *boost::unit_test::label("long")) {
  Engine::Data checked{options_for({"cpu:0"})};
  const std::string tiles =
      R"(, "tile_size": 64, "overlap": 32, "temporal_size": 8, "temporal_overlap": 4)";
  const auto told = [&](const std::string& type, const std::string& in, const char* input,
                        const std::string& more = "") {
    check_inference(checked, flow(type, in, cat(", \"", input, R"(": ["in", 0])", more)));
  };
  const auto empty = [](int width, int length, int count) {
    return cat(R"({"class_type": "EmptyHunyuanLatentVideo", "inputs": {"height": 32, "width": )",
               width, R"(, "length": )", length, R"(, "batch_size": )", count, "}}");
  };
  const auto pictures = [](int width, int count) {
    return cat(R"({"class_type": "EmptyImage", "inputs": {"height": 32, "color": 255, "width": )",
               width, R"(, "batch_size": )", count, "}}");
  };
  for (const int length : {1, 9}) told("VAEDecode", empty(48, length, 2), "samples");
  for (const int count : {1, 10}) told("VAEEncode", pictures(51, count), "pixels");
  told("VAEDecodeTiled", empty(80, 13, 1), "samples", tiles);
  told("VAEEncodeTiled", pictures(81, 10), "pixels", tiles);
}

// As for pictures, a plan is made, and the run says what is wrong.
BOOST_AUTO_TEST_CASE(tiles_that_never_get_on_are_refused_by_the_run) {
  const std::string stuck = flow(
      "VAEEncodeTiled",
      R"({"class_type": "EmptyImage", "inputs": {"height": 32, "color": 255, "width": 81, "batch_size": 10}})",
      R"(, "pixels": ["in", 0], "tile_size": 64, "overlap": 64, "temporal_size": 8, "temporal_overlap": 4)");
  Engine planned(options_for({"fake:0"}));
  BOOST_CHECK_NO_THROW((void)planned.plan_min_memory(planned.parse(stuck), true));
  const std::string text = engine_refusal([&] { run_whole(stuck, {"out.LATENT"}); });
  BOOST_TEST(text.find("never get on") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(placement_and_little_memory_keep_the_bytes) {
  for (const bool is_latent : {false, true}) {
    const auto flow_of = [&](const std::string& hints) {
      return is_latent ? encode("9.wide.", hints) : decode("9.wide.", hints);
    };
    const auto made = [&](EngineOptions options, const std::string& hints) {
      Engine engine(std::move(options));
      return floats_of(engine, flow_of(hints), is_latent);
    };
    const std::vector<float> alone = made(options_for({"cpu:0"}), "");
    BOOST_TEST(!alone.empty());
    BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}), "")), "fake");
    BOOST_TEST(are_equal(alone, made(options_for({"fake:0", "fake:1"}),
                                     R"(, "parallel": "layers", "device": "fake:0,fake:1")")),
               "layers");
    BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}, 1 << 20), "")), "little memory");
  }
}

// 20 x 16 cells by tiles of 96 pixels, 12 cells, that overlap by 3 at least: two of a row, each of
// 12 cells, and two of a column, of 10.
BOOST_AUTO_TEST_CASE(a_video_that_finds_no_room_is_decoded_in_few_tiles_of_one_size,
                     *boost::unit_test::label("long")) {
  const std::string text = flow(
      "VAEDecode",
      R"({"class_type": "RandomLatent", "inputs": {"width": 160, "height": 128, "channels": 16, "length": 5, "seed": 3}})",
      R"(, "samples": ["in", 0])");
  EngineOptions options = options_for({"fake:0"});
  options.reserves["fake:0"] = std::uint64_t{0};
  options.memory_poll_seconds = 0;
  Engine engine(options);
  std::uint64_t least = 0, all = 0;
  const engine::Json told =
      engine::parse_json(engine.plan_min_memory(engine.parse(text), true), "min-memory");
  for (std::size_t i = 0; i < told.size(); ++i)
    if (told.at(i).at("device").as_string() == "fake:0")
      for (const engine::Json& node : told.at(i).at("nodes").as_array())
        if (node.at("node").as_string() == "out")
          least = node.at("tiled_min_bytes").as_uint64(), all = node.at("all_bytes").as_uint64();
  BOOST_TEST_REQUIRE(least > 0u);
  // What is kept of whole frames is not needed beside tiles.
  BOOST_TEST_REQUIRE(4 * least < all);
  BOOST_TEST_MESSAGE("tiles: " << least << ", all: " << all);
  const auto made = [&](std::uint64_t budget, std::vector<std::string>& warnings, int& tiles) {
    EngineOptions narrow = options;
    if (budget > 0) narrow.budgets = {{"fake:0", MemorySize{budget}}};
    Engine decoding(std::move(narrow));
    const auto observe = [&](const Event& event) {
      if (event.kind == Event::Kind::warning && event.node == "out")
        warnings.emplace_back(event.text), tiles = 0;
      if (event.kind == Event::Kind::node_progress && event.node == "out") ++tiles;
    };
    return decoding.start(decoding.parse(text), {.observer = observe, .fetch = {"out.IMAGE"}})
        .wait()
        .floats("out.IMAGE");
  };
  std::vector<std::string> warnings, none;
  int tiles = 0, frames = 0;
  const std::vector<float> whole = made(0, none, frames);
  const std::vector<float> in_tiles = made(least + (all - least) / 2, warnings, tiles);
  BOOST_TEST(none.empty());
  BOOST_TEST_REQUIRE(!warnings.empty());
  BOOST_TEST(warnings.back().find("in tiles of 96 pixels") != std::string::npos, warnings.back());
  BOOST_TEST(tiles == 2 * 2);
  const double error = relative_error(in_tiles, whole);
  BOOST_TEST(error > 0);
  BOOST_TEST(error < 0.5, "relative error " << error);

  // With the least that is told it gets through, in the smallest tiles; with a byte less it is
  // refused before it begins.
  std::vector<std::string> of_least;
  BOOST_TEST(made(least, of_least, tiles).size() == whole.size());
  BOOST_TEST_REQUIRE(!of_least.empty());
  BOOST_TEST(of_least.back().find("in tiles of 64 pixels") != std::string::npos, of_least.back());
  const std::string refused = engine_refusal([&] { made(least - 1, none, tiles); });
  BOOST_TEST(refused.find(cat("needs at least ", engine::format_bytes(least))) != std::string::npos,
             refused);
  BOOST_TEST(none.empty());
}

BOOST_AUTO_TEST_CASE(progress_is_told_after_each_chunk_and_a_run_is_cancelled_between_two) {
  Engine engine(options_for({"cpu:0"}));
  std::atomic<int> told = 0;
  const auto observe = [&](const Event& event) {
    if (event.kind == Event::Kind::node_progress && event.node == "out") ++told;
  };
  engine.start(engine.parse(decode("13.wide.")), {.observer = observe, .fetch = {"out.IMAGE"}})
      .wait();
  BOOST_TEST(told >= 4);
  Run* running = nullptr;
  std::atomic<bool> may_cancel = false;
  told = 0;
  const auto cancel = [&](const Event& event) {
    if (event.kind != Event::Kind::node_progress || event.node != "out") return;
    ++told;
    while (!may_cancel) std::this_thread::yield();
    running->cancel();
  };
  Run run =
      engine.start(engine.parse(decode("9.tall.")), {.observer = cancel, .fetch = {"out.IMAGE"}});
  running = &run;
  may_cancel = true;
  try {
    run.wait();
    BOOST_TEST(false, "it was not cancelled");
  } catch (const EngineError& error) {
    BOOST_TEST(error.code() == HEDDLE_CANCELLED, error.what());
  }
  BOOST_TEST(told < 3);
}

// But for the frames themselves, which grow, a longer video takes no more of a device.
BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_number_of_frames,
                     *boost::unit_test::label("long")) {
  Engine fake(options_for({"fake:0"}));
  const auto need = [&](int cells, bool whole) {
    const std::string text = flow(
        "VAEDecode",
        cat(R"({"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 48, "height": 32, "length": )",
            1 + 4 * (cells - 1), R"(, "batch_size": 1}})"),
        R"(, "samples": ["in", 0])");
    const engine::Json told =
        engine::parse_json(fake.plan_min_memory(fake.parse(text), true), "min-memory");
    for (std::size_t i = 0; i < told.size(); ++i)
      if (told.at(i).at("device").as_string() == "fake:0")
        for (const engine::Json& node : told.at(i).at("nodes").as_array())
          if (node.at("node").as_string() == "out")
            return std::int64_t(node.at(whole ? "all_bytes" : "min_bytes").as_uint64());
    throw std::logic_error("nothing is told of fake:0");
  };
  const std::int64_t frame = 4 * 48 * 32 * 3, cell = 4 * 16 * 6 * 4;
  for (const bool whole : {false, true}) {
    const std::int64_t growth = need(21, whole) - need(6, whole);
    BOOST_TEST_MESSAGE("6 of the latent: " << need(6, whole) << ", 15 more: " << growth);
    // Of what is given out in small pieces a 31st more is counted.
    BOOST_TEST(31 * growth <= 32 * 15 * (4 * frame + cell), growth << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(an_autoencoder_of_pictures_says_that_it_has_no_frames) {
  add("vae/pictures", seeded_model("z_image.vae"));
  const std::string text = engine_refusal([&] {
    run_whole(flow("VAEDecode", given("test.latent", "5.wide.latent"), R"(, "samples": ["in", 0])",
                   "", "pictures"),
              {"out.IMAGE"});
  });
  BOOST_TEST(text.find("codes single pictures") != std::string::npos, text);
  BOOST_TEST(text.find("several frames") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
