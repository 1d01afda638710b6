// VAEDecode, VAEEncode and their tiled forms of videos over a tiny autoencoder of MiniMax H3 whose
// weights follow from their names, against what diffusers makes of the same ones
// (../goldens/make_h3_vae_goldens.py).
#include <algorithm>
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"
#include "tests/support/h3_files.h"

namespace heddle::test {
namespace {

using engine::cat;

struct H3VideoNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/h3_vae/expected.safetensors";
  TensorFile expected{golden};
  static constexpr const char* kTiles =
      R"(, "tile_size": 64, "overlap": 32, "temporal_size": 64, "temporal_overlap": 8)";

  H3VideoNodes() {
    add("vae/h3", h3_video_tensors(false));
    add("vae/h3_diffusers", h3_video_tensors(true));
  }
  std::string given(const char* type, const std::string& name) const {
    return cat(R"({"class_type": ")", type, R"(", "inputs": {"path": ")", golden.string(),
               R"(", "name": ")", name, R"("}})");
  }
  static std::string flow(const std::string& in, const std::string& out,
                          const std::string& file = "h3") {
    return cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")", file,
               R"(.safetensors"}}, )", in, R"(, "out": )", out, ", ", kLook, "}");
  }
  std::string decode(const std::string& name, const std::string& type = "VAEDecode",
                     const std::string& more = "", const std::string& file = "h3") const {
    return flow(cat(R"("in": )", given("test.latent", name)),
                cat(R"({"class_type": ")", type,
                    R"(", "inputs": {"vae": ["vae", 0], "samples": ["in", 0])", more, "}}"),
                file);
  }
  // Of pictures, `times` times.
  std::string encode(int times, const std::string& type = "VAEEncode", const std::string& more = "",
                     const std::string& file = "h3",
                     const std::string& pictures = "frames.half") const {
    return flow(
        cat(R"("half": )", given("test.image", pictures),
            R"(, "in": {"class_type": "RepeatImageBatch", "inputs": {"image": ["half", 0], "amount": )",
            times, "}}"),
        cat(R"({"class_type": ")", type, R"(", "inputs": {"vae": ["vae", 0], "pixels": ["in", 0])",
            more, "}}"),
        file);
  }
  // Of grey pictures, to a latent and back; kind: "", or "Tiled".
  static std::string there_and_back(int count, const std::string& kind = "",
                                    const std::string& more = "", const std::string& hints = "",
                                    int width = 48) {
    return flow(
        cat(R"("in": {"class_type": "EmptyImage", "inputs": {"height": 32, "color": 8421504, "width": )",
            width, R"(, "batch_size": )", count, R"(}}, "latent": {"class_type": "VAEEncode)", kind,
            R"(", "inputs": {"vae": ["vae", 0], "pixels": ["in", 0])", more, "}", hints, "}"),
        cat(R"({"class_type": "VAEDecode)", kind,
            R"(", "inputs": {"vae": ["vae", 0], "samples": ["latent", 0])", more, "}", hints, "}"));
  }
  // The pixels that the goldens hold.
  static std::vector<float> some(const std::vector<float>& frames,
                                 const std::vector<std::int64_t>& shape) {
    std::vector<float> kept;
    for (const std::int64_t t : {0, 3, 16, 17, 18, 21, 22, 38})
      for (std::int64_t y = 0; t < shape[0] && y < shape[1]; y += 3)
        for (std::int64_t x = 1; x < shape[2]; x += 2)
          for (std::int64_t c = 0; c < shape[3]; ++c)
            kept.push_back(
                frames.at(std::size_t(((t * shape[1] + y) * shape[2] + x) * shape[3] + c)));
    return kept;
  }
  void hold_pictures(const std::string& flow, const std::string& wanted, std::int64_t frames) {
    const heddle::Results results = run_whole(flow, {"out.IMAGE"});
    const std::vector<std::int64_t> shape = results.shape("out.IMAGE");
    BOOST_TEST_REQUIRE(shape.size() == 4u);
    BOOST_TEST(shape[0] == frames);
    hold(some(results.floats("out.IMAGE"), shape), wanted);
  }
  void hold_latent(const std::string& flow, const std::string& wanted) {
    const heddle::Results results = run_whole(flow, {"out.LATENT"});
    const std::vector<std::int64_t> shape = results.shape("out.LATENT", "samples");
    BOOST_TEST(shape == expected.at(wanted).shape, boost::test_tools::per_element());
    hold(results.floats("out.LATENT", "samples"), wanted);
  }
  void hold(const std::vector<float>& made, const std::string& wanted) {
    const double error = relative_error(made, expected.floats(wanted));
    BOOST_TEST_MESSAGE(wanted << ": relative error " << error << ", " << -20 * std::log10(error)
                              << " dB");
    BOOST_TEST(error < 2e-5, wanted << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(h3_video_nodes, H3VideoNodes)

BOOST_AUTO_TEST_CASE(clips_go_over_into_each_other_as_in_diffusers) {
  hold_pictures(decode("video.z"), "video.whole", 39);
  hold_pictures(decode("video.z", "VAEDecode", "", "h3_diffusers"), "video.whole", 39);
  hold_pictures(decode("cut.z"), "cut.whole", 13);
}

BOOST_AUTO_TEST_CASE(tiles_go_over_into_each_other_as_in_diffusers) {
  hold_pictures(decode("wide.z", "VAEDecodeTiled", kTiles), "wide.tiles", 22);
  hold_latent(encode(1, "VAEEncodeTiled", kTiles, "h3", "wide.frames"), "wide.latent");
}

BOOST_AUTO_TEST_CASE(a_batch_of_pictures_is_a_video_whose_latent_equals_that_of_diffusers) {
  hold_latent(encode(2), "frames.whole");
  hold_latent(encode(2, "VAEEncode", "", "h3_diffusers"), "frames.whole");
}

BOOST_AUTO_TEST_CASE(a_latent_in_the_units_of_the_diffusion_model_is_decoded) {
  hold_pictures(
      flow(
          cat(R"("half": )", given("test.image", "frames.half"),
              R"(, "in": {"class_type": "RepeatImageBatch", "inputs": {"image": ["half", 0], "amount": 2}},
      "latent": {"class_type": "VAEEncode", "inputs": {"pixels": ["in", 0], "vae": ["vae", 0]}})"),
          R"({"class_type": "VAEDecode", "inputs": {"samples": ["latent", 0], "vae": ["vae", 0]}})"),
      "frames.again", 22);
}

BOOST_AUTO_TEST_CASE(a_picture_is_a_video_of_one_frame) {
  const std::string first = cat(
      R"("all": )", given("test.image", "frames.half"),
      R"(, "in": {"class_type": "ImageFromBatch", "inputs": {"image": ["all", 0], "batch_index": 0, "length": 1}})");
  hold_latent(
      flow(first,
           R"({"class_type": "VAEEncode", "inputs": {"pixels": ["in", 0], "vae": ["vae", 0]}})"),
      "frame.latent");
  const heddle::Results results = run_whole(decode("pictures.z"), {"out.IMAGE"});
  std::vector<float> wanted = expected.floats("pictures.out");
  for (float& number : wanted) number = std::clamp(number * 0.5f + 0.5f, 0.0f, 1.0f);
  const double error = relative_error(results.floats("out.IMAGE"), wanted);
  BOOST_TEST(error < 2e-5, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(clips_are_told_as_they_are_run) {
  Engine::Data checked{options_for({"cpu:0"})};
  for (const int count : {1, 22}) check_inference(checked, there_and_back(count));
  check_inference(checked, there_and_back(22, "Tiled", kTiles, "", 96));
}

BOOST_AUTO_TEST_CASE(placement_and_little_memory_keep_the_bytes) {
  const auto made = [&](EngineOptions options, const std::string& hints) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(there_and_back(5, "", "", hints)), {{}, {"out.IMAGE"}})
        .wait()
        .floats("out.IMAGE");
  };
  const std::vector<float> alone = made(options_for({"cpu:0"}), "");
  BOOST_TEST(!alone.empty());
  BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}), "")), "fake");
  BOOST_TEST(are_equal(alone, made(options_for({"fake:0", "fake:1"}),
                                   R"(, "parallel": "layers", "device": "fake:0,fake:1")")),
             "layers");
  BOOST_TEST(are_equal(alone, made(options_for({"fake:0"}, 16 << 20), "")), "little memory");
}

// But for the frames themselves, which grow, a longer video takes no more of a device.
BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_number_of_frames) {
  Engine fake(options_for({"fake:0"}));
  const auto need = [&](int frames, const char* key) {
    const engine::Json told = engine::parse_json(
        fake.plan_min_memory(fake.parse(there_and_back(frames)), true), "min-memory");
    for (std::size_t i = 0; i < told.size(); ++i)
      if (told.at(i).at("device").as_string() == "fake:0")
        for (const engine::Json& node : told.at(i).at("nodes").as_array())
          if (node.at("node").as_string() == "out") return std::int64_t(node.at(key).as_uint64());
    throw std::logic_error("nothing is told of fake:0");
  };
  const std::int64_t frame = 4 * 48 * 32 * 3, cells = 5 * 4 * 24 * 6;
  for (const char* key : {"min_bytes", "all_bytes"}) {
    const std::int64_t growth = need(22 + 5 * 17, key) - need(22, key);
    BOOST_TEST_MESSAGE("22 frames: " << need(22, key) << ", 85 more: " << growth);
    // Of what is given out in small pieces a 31st more is counted, rounded up.
    BOOST_TEST(31 * (growth - 1) <= 32 * (85 * frame + 5 * cells), growth << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto says = [&](const std::string& flow, const char* output, const char* words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {output}); });
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  says(decode("wide.z", "VAEDecodeTiled",
              R"(, "tile_size": 64, "overlap": 64, "temporal_size": 64, "temporal_overlap": 8)"),
       "out.IMAGE", "never get on");
  says(decode("frames.half"), "out.IMAGE", "channels");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
