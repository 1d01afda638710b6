// WanHuMoImageToVideo, and what HuMo draws of it, against PyTorch
// (../goldens/make_wan_humo_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct WanHumoNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_humo/expected.safetensors";
  TensorFile expected{golden};

  WanHumoNodes() {
    for (const char* kind : {"flow", "silent"})
      add(cat("diffusion_models/", kind), seeded_model(kind, true, "wan_humo"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  static std::string node_of(const std::string& name, const std::string& type,
                             const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  std::string nodes(const std::string& model) const {
    const auto given = [&](const char* as, const char* type, const char* name, const char* more) {
      return node_of(as, type,
                     cat(R"("path": ")", golden.string(), R"(", "name": ")", name, "\"", more));
    };
    return cat(loaded(model), R"(, "one": )", text("one", golden), R"(, "two": )",
               text("two", golden), given("pictures", "test.image", "pictures", ""),
               given("heard", "test.heard", "states", R"(, "points": 4700)"),
               node_of("vae", "VAELoader", R"("vae_name": "wan_2.1_vae.safetensors")"));
  }
  static std::string moving(const std::string& more, int length = 9) {
    return node_of("node", "WanHuMoImageToVideo",
                   cat(R"("positive": ["one", 0], "negative": ["two", 0], "vae": ["vae", 0],
                          "width": 64, "height": 64, "batch_size": 1, "length": )",
                       length, more));
  }
  static constexpr const char* kBoth =
      R"(, "audio_encoder_output": ["heard", 0], "ref_image": ["pictures", 0])";

  std::string drawn(const std::string& model, const std::string& node,
                    const std::string& hints = "") const {
    return cat("{", nodes(model), node,
               R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7,
                "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive":
                ["node", 0], "negative": ["node", 1], "latent_image": ["node", 2], "denoise": 1.0})",
               hints, "}, ", kLook, "}");
  }
  // Of texts and pictures that are known before a run.
  static std::string known(std::string flow) {
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      flow.insert(flow.find(begin) + begin.size(), "given_");
    }
    const std::size_t from = flow.find(R"("pictures": {)"), to = flow.find("}}", from) + 2;
    return flow.replace(from, to - from, R"("pictures": {"class_type": "EmptyImage", "inputs":
        {"width": 12, "height": 9, "batch_size": 2, "color": 255000}})");
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", " << -20 * std::log10(error)
                            << " dB");
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  std::vector<float> latent_of(const std::string& flow) {
    return run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples");
  }
  std::vector<float> told(const std::string& node, int output, const char* path) {
    return run_whole(cat("{", nodes("flow"), node,
                         R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["node", )",
                         output,
                         R"(]}}, "look": {"class_type": "test.look", "inputs": {"value":
                         ["entry", 0]}}})"),
                     {"entry.value"})
        .floats("entry.value", path);
  }
  void refused(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_humo_nodes, WanHumoNodes)

BOOST_AUTO_TEST_CASE(frames_hear_means_of_layers) {
  compare(told(moving(kBoth), 0, "audio_embed"), "windows");
  for (const float number : told(moving(kBoth), 1, "audio_embed")) BOOST_TEST(number == 0.0f);
}

BOOST_AUTO_TEST_CASE(a_video_of_a_picture_and_a_sound_equals_pytorch) {
  compare(latent_of(drawn("flow", moving(kBoth))), "latent");
}

BOOST_AUTO_TEST_CASE(a_video_of_a_text_alone_equals_pytorch) {
  compare(latent_of(drawn("silent", moving(""))), "silent.latent");
}

BOOST_AUTO_TEST_CASE(dividing_a_video_with_a_sound_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::string flow = known(drawn("flow", moving(kBoth)));
  const std::vector<float> of_one = draw(options_for({"cpu:0"}), flow);
  const auto divided = [&](const char* mode) {
    return draw(options_for({"fake:0", "fake:1"}),
                known(drawn("flow", moving(kBoth),
                            cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"))));
  };
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST(are_equal(of_one, divided(mode)), mode);
  BOOST_TEST(are_equal(of_one, draw(options_for({"fake:0"}, std::uint64_t{16} << 20), flow)),
             "little memory");
  const double error = relative_error(divided("sequence"), of_one);
  BOOST_TEST_MESSAGE("sequence: relative error " << error);
  BOOST_TEST(error < kTolerance, "sequence: relative error " << error);
}

BOOST_AUTO_TEST_CASE(a_video_with_a_sound_is_told_before_a_run) {
  for (const std::string& flow : {drawn("silent", moving("")),
                                  drawn("silent", moving(R"(, "ref_image": ["pictures", 0])"))}) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    check_inference(data, known(flow));
  }
}

BOOST_AUTO_TEST_CASE(what_humo_cannot_hear_is_refused) {
  std::string other = drawn("flow", moving(kBoth));
  const std::string from = R"("name": "states")";
  refused(other.replace(other.find(from), from.size(), R"("name": "windows")"),
          {"audio_encoder_output: it has 1 layers' states", "33", "whisper_large_v3"});
  refused(drawn("silent", moving(kBoth)),
          {"audio_embed", "8 moments of 5 states of 1280 numbers", "WanHuMoImageToVideo"});
  // Another latent than the node's own.
  std::string longer = drawn("flow", moving(kBoth));
  const std::string at = R"("latent_image": ["node", 2])";
  longer.replace(longer.find(at), at.size(), R"("latent_image": ["long", 0])");
  refused(longer.insert(1, R"("long": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width":
              64, "height": 64, "length": 13, "batch_size": 1}}, )"),
          {"audio_embed", "WanHuMoImageToVideo"});
}

BOOST_AUTO_TEST_SUITE_END()
