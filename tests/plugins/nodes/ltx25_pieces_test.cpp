// Videos by pieces through a tiny decoder of LTX 2.5, whose cells see frames before their own and
// behind it: the numbers are those of the video as a whole, and a longer one takes no more of a
// device.
#include <algorithm>
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct Ltx25Pieces : PlacedFixture {
  // 90 dB below what is there.
  static constexpr double kTolerance = 3.16e-5;
  // Frames that cells of both stages and of pixels see.
  struct Sees {
    const char* name;
    int first, second, pixels;
  };
  static constexpr Sees kFiles[] = {{"narrow", 3, 3, 3}, {"wide", 5, 3, 7}, {"single", 1, 3, 5}};

  Ltx25Pieces() {
    std::filesystem::create_directories(folder / "models/vae");
    for (const Sees& sees : kFiles) {
      const std::string told =
          cat(R"({\"vae\": {\"decoder\": {\"upsamples\": [[[1, 2, 2], 2], [[2, 2, 2], 1]],)",
              R"( \"stage_kernels\": [[)", sees.first, ", 3, 3], [", sees.second,
              R"(, 5, 5]], \"stage5_kernel\": [)", sees.pixels, ", 5, 5]}}}");
      write_safetensors(folder / "models/vae" / cat(sees.name, ".safetensors"),
                        seeded_model("decoder", false, "ltx25_vae"),
                        FileMetadata{{"config", told}});
    }
  }
  // Of so many frames of the latent. whole: by one tile, which the decoder decodes at once.
  static std::string decode(const std::string& file, int frames, bool whole = false,
                            const std::string& hints = "", int width = 24) {
    return cat(
        R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")", file,
        R"(.safetensors"}}, "in": {"class_type": "RandomLatent", "inputs": {"width": )", width,
        R"(, "height": 16, "channels": 8, "length": )", 1 + 4 * (frames - 1),
        R"(, "seed": 3}}, "out": {"class_type": "VAEDecode)", whole ? "Tiled" : "",
        R"(", "inputs": {"samples": ["in", 0], "vae": ["vae", 0])",
        whole ? R"(, "tile_size": 64, "overlap": 0, "temporal_size": 4096, "temporal_overlap": 4)"
              : "",
        "}", hints, "}, ", kLook, "}");
  }
  std::vector<float> made(const std::string& flow) {
    return run_whole(flow, {"out.IMAGE"}).floats("out.IMAGE");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx25_pieces, Ltx25Pieces)

// Few frames are less than a layer sees, or one piece; of more, all layers have several.
BOOST_AUTO_TEST_CASE(decoding_by_pieces_equals_decoding_as_a_whole) {
  for (const Sees& file : kFiles)
    for (const int frames : {2, 3, 4, 5, 6, 7, 8, 11, 20}) {
      const std::vector<float> pieces = made(decode(file.name, frames)),
                               whole = made(decode(file.name, frames, true));
      BOOST_TEST_REQUIRE(pieces.size() == whole.size());
      double worst = 0;
      for (std::size_t i = 0; i < whole.size(); ++i)
        worst = std::max(worst, std::abs(double(pieces[i]) - whole[i]));
      const double error = relative_error(pieces, whole);
      BOOST_TEST_MESSAGE(file.name << ", " << frames << " frames: relative error " << error << ", "
                                   << -20 * std::log10(error) << " dB, at most " << worst);
      BOOST_TEST(error < kTolerance, file.name << ", " << frames << " frames: " << error);
      BOOST_TEST(worst < kTolerance, file.name << ", " << frames << " frames, the worst number");
    }
}

BOOST_AUTO_TEST_CASE(frames_come_piece_by_piece) {
  Engine engine(options_for({"cpu:0"}));
  std::vector<double> told;
  const auto observe = [&](const Event& event) {
    if (event.kind == Event::Kind::node_progress && event.node == "out")
      told.push_back(event.fraction);
  };
  engine.start(engine.parse(decode("narrow", 20)), {.observer = observe, .fetch = {"out.IMAGE"}})
      .wait();
  BOOST_TEST(told.size() > 10u);
  BOOST_TEST(std::ranges::is_sorted(told));
}

BOOST_AUTO_TEST_CASE(placement_and_little_memory_keep_the_bytes) {
  const auto by = [&](EngineOptions options, const std::string& hints) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(decode("wide", 14, false, hints)), {{}, {"out.IMAGE"}})
        .wait()
        .floats("out.IMAGE");
  };
  const std::vector<float> alone = by(options_for({"cpu:0"}), "");
  BOOST_TEST(!alone.empty());
  BOOST_TEST(are_equal(alone, by(options_for({"fake:0"}), "")), "fake");
  BOOST_TEST(are_equal(alone, by(options_for({"fake:0", "fake:1"}), "")), "two");
  BOOST_TEST(are_equal(alone, by(options_for({"fake:0", "fake:1"}),
                                 R"(, "parallel": "layers", "device": "fake:0,fake:1")")),
             "layers");
  BOOST_TEST(are_equal(alone, by(options_for({"fake:0"}, 8 << 20), "")), "little memory");
}

BOOST_AUTO_TEST_CASE(pieces_are_told_as_they_are_run) {
  Engine::Data checked{options_for({"cpu:0"})};
  for (const int frames : {1, 3, 12}) check_inference(checked, decode("wide", frames));
}

// But for the frames themselves and the latent, which grow, a longer video takes no more.
BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_number_of_frames) {
  Engine fake(options_for({"fake:0"}));
  const auto need = [&](int frames, bool whole) {
    const engine::Json told = engine::parse_json(
        fake.plan_min_memory(fake.parse(decode("narrow", frames, whole, "", 64)), true),
        "min-memory");
    for (std::size_t i = 0; i < told.size(); ++i)
      if (told.at(i).at("device").as_string() == "fake:0")
        for (const engine::Json& node : told.at(i).at("nodes").as_array())
          if (node.at("node").as_string() == "out")
            return std::int64_t(node.at("all_bytes").as_uint64());
    throw std::logic_error("nothing is told of fake:0");
  };
  const std::int64_t frame = 4 * 64 * 16 * 3, cell = 4 * 8 * 8 * 2,
                     growth = need(45, false) - need(30, false);
  BOOST_TEST_MESSAGE("30 of the latent: " << need(30, false) << ", 15 more: " << growth
                                          << "; as a whole 30: " << need(30, true)
                                          << ", 15 more: " << need(45, true) - need(30, true));
  // Of what is given out in small pieces a 31st more is counted. The latent stands there twice.
  BOOST_TEST(31 * growth <= 32 * 15 * (2 * frame + 2 * cell), growth << " bytes");
  BOOST_TEST(need(45, true) - need(30, true) > 3 * growth);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
