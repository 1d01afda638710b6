// WanInfiniteTalkToVideo, and what Wan 2.1 draws of it, against PyTorch
// (../goldens/make_wan_talk_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

// Of moments the golden holds every eleventh number.
constexpr std::size_t kHeardStep = 11;

struct WanTalkNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_talk_nodes/expected.safetensors";
  TensorFile expected{golden};

  WanTalkNodes() {
    add("diffusion_models/wan2.1_i2v_14B", seeded_model("flow", true, "wan_talk_nodes"));
    add("model_patches/infinite_talk", seeded_model("patch", false, "wan_talk_nodes"));
    add("audio_encoders/wav2vec2_base", seeded_model("plain", false, "sound_encoders"));
    add("audio_encoders/wav2vec2_large", seeded_model("stable", false, "sound_encoders"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  static std::string node_of(const std::string& name, const std::string& type,
                             const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  std::string given(const char* as, const char* type, const char* name,
                    const char* more = "") const {
    return node_of(as, cat("test.", type),
                   cat(R"("path": ")", golden.string(), R"(", "name": ")", name, "\"", more));
  }
  std::string nodes() const {
    const auto heard = [](const char* name, const char* sound) {
      return node_of(name, "AudioEncoderEncode",
                     cat(R"("audio_encoder": ["encoder", 0], "audio": [")", sound, R"(", 0])"));
    };
    const auto mask = [](const char* name, const char* picture) {
      return node_of(name, "ImageToMask",
                     cat(R"("image": [")", picture, R"(", 0], "channel": "red")"));
    };
    constexpr const char* kRate = R"(, "rate": 16000)";
    return cat(loaded("wan2.1_i2v_14B"), R"(, "one": )", text("one", golden), R"(, "two": )",
               text("two", golden), given("pictures", "image", "pictures"),
               given("left", "image", "left"), given("right", "image", "right"),
               given("sound", "sound", "first.waveform", kRate),
               given("other", "sound", "second.waveform", kRate),
               node_of("first", "ImageFromBatch",
                       R"("image": ["pictures", 0], "batch_index": 0, "length": 1)"),
               node_of("patch", "ModelPatchLoader", R"("name": "infinite_talk.safetensors")"),
               node_of("vae", "VAELoader", R"("vae_name": "wan_2.1_vae.safetensors")"),
               node_of("encoder", "AudioEncoderLoader",
                       R"("audio_encoder_name": "wav2vec2_base.safetensors")"),
               heard("heard", "sound"), heard("answer", "other"), mask("mask_1", "left"),
               mask("mask_2", "right"));
  }
  static std::string speaking(const std::string& more, const char* scale = "1.0",
                              const char* mode = "single_speaker") {
    return node_of("node", "WanInfiniteTalkToVideo",
                   cat(R"("mode": ")", mode,
                       R"(", "model": ["model", 0], "model_patch": ["patch", 0], "positive":
          ["one", 0], "negative": ["two", 0], "vae": ["vae", 0], "width": 64, "height": 64,
          "length": 9, "audio_encoder_output_1": ["heard", 0], "motion_frame_count": 5,
          "audio_scale": )",
                       scale, more));
  }
  static constexpr const char* kFirst = R"(, "start_image": ["first", 0])";
  static constexpr const char* kTwo = R"(, "mode.audio_encoder_output_2": ["answer", 0],
      "mode.mask_1": ["mask_1", 0], "mode.mask_2": ["mask_2", 0])";
  static constexpr const char* kBehind = R"(, "previous_frames": ["pictures", 0])";

  static std::string alone() { return speaking(kFirst, "0.7"); }
  static std::string both() { return speaking(cat(kFirst, kTwo, kBehind), "1.0", "two_speakers"); }

  std::string drawn(const std::string& node, int seed, const std::string& hints = "") const {
    return cat("{", nodes(), node,
               R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["node", 0], "seed": )",
               seed, R"(, "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple",
               "positive": ["node", 1], "negative": ["node", 2], "latent_image": ["node", 3],
               "denoise": 1.0})",
               hints, "}, ", kLook, "}");
  }
  // Of texts, pictures and sounds that are known before a run.
  static std::string known(std::string flow) {
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      flow.insert(flow.find(begin) + begin.size(), "given_");
    }
    const auto replace = [&](const std::string& name, const std::string& by) {
      const std::size_t from = flow.find(cat("\"", name, R"(": {)")),
                        to = flow.find("}}", from) + 2;
      flow.replace(from, to - from, cat("\"", name, "\": ", by));
    };
    for (const std::string name : {"pictures", "left", "right"})
      replace(name, cat(R"({"class_type": "EmptyImage", "inputs": {"width": 10, "height": 8,
              "batch_size": )",
                        name == "pictures" ? 6 : 1, R"(, "color": 255000}})"));
    for (const char* name : {"sound", "other"})
      replace(name, R"({"class_type": "EmptyAudio", "inputs": {"duration": 0.06, "sample_rate":
              16000, "channels": 1}})");
    // A black mask shows nobody.
    for (const char* name : {"mask_1", "mask_2"})
      flow.replace(flow.find("\"red\"", flow.find(cat("\"", name, "\": {"))), 5, "\"green\"");
    return flow;
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", " << -20 * std::log10(error)
                            << " dB");
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  static std::vector<float> some_of(const std::vector<float>& all) {
    std::vector<float> some;
    for (std::size_t i = 0; i < all.size(); i += kHeardStep) some.push_back(all[i]);
    return some;
  }
  std::vector<float> latent_of(const std::string& node, int seed) {
    return run_whole(drawn(node, seed), {"out.LATENT"}).floats("out.LATENT", "samples");
  }
  void refused(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_talk_nodes, WanTalkNodes)

BOOST_AUTO_TEST_CASE(a_video_of_one_speaker_equals_pytorch) {
  compare(latent_of(alone(), 7), "alone.latent");
}

BOOST_AUTO_TEST_CASE(a_video_of_a_sound_alone_equals_pytorch) {
  compare(latent_of(speaking(""), 7), "free.latent");
}

BOOST_AUTO_TEST_CASE(a_video_of_two_speakers_that_goes_on_equals_pytorch) {
  compare(latent_of(both(), 8), "both.latent");
}

BOOST_AUTO_TEST_CASE(frames_to_cut_are_those_of_the_part_before) {
  const auto trimmed = [&](const std::string& node) {
    return run_whole(
               cat("{", nodes(), node,
                   node_of("cut", "ImageFromBatch",
                           R"("image": ["pictures", 0], "batch_index": ["node", 4],
                                 "length": 4096)"),
                   ", ",
                   R"("look": {"class_type": "test.look", "inputs": {"value": ["cut", 0]}}})"),
               {"cut.IMAGE"})
               .floats("cut.IMAGE")
               .size() /
           (8 * 10 * 3);
  };
  BOOST_TEST(trimmed(alone()) == 6u);
  BOOST_TEST(trimmed(both()) == 1u);
}

BOOST_AUTO_TEST_CASE(dividing_speakers_keeps_their_bytes_or_nearly_their_numbers,
                     *boost::unit_test::label("long")) {
  const auto divided = [&](const char* mode, const std::string& node) {
    return draw(
        options_for({"fake:0", "fake:1"}),
        known(drawn(node, 7, cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"))));
  };
  std::vector<float> of_one;
  for (const std::string& node : {both(), alone()}) {
    const std::string flow = known(drawn(node, 7));
    of_one = draw(options_for({"cpu:0"}), flow);
    for (const char* mode : {"layers", "cfg"})
      BOOST_TEST(are_equal(of_one, divided(mode, node)), mode);
    BOOST_TEST(are_equal(of_one, draw(options_for({"fake:0"}, std::uint64_t{16} << 20), flow)),
               "little memory");
  }
  const double error = relative_error(divided("sequence", alone()), of_one);
  BOOST_TEST_MESSAGE("sequence: relative error " << error);
  BOOST_TEST(error < kTolerance, "sequence: relative error " << error);
  const std::string text = engine_refusal([&] { divided("sequence", both()); });
  BOOST_TEST(text.find("two speakers") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(speakers_are_told_before_a_run) {
  for (const std::string& node : {alone(), both(), speaking("")}) {
    heddle::Engine::Data told(options_for({"cpu:0"}));
    check_inference(told, known(drawn(node, 7)));
  }
}

// The levels of a model that is not there yet.
BOOST_AUTO_TEST_CASE(a_schedule_of_a_model_that_speaks_is_told_before_a_run) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  check_inference(
      told,
      known(
          cat("{", nodes(), both(),
              node_of("levels", "BasicScheduler",
                      R"("model": ["node", 0], "scheduler": "simple", "steps": 3, "denoise": 1.0)"),
              node_of("guider", "CFGGuider",
                      R"("model": ["node", 0], "positive": ["node", 1], "negative": ["node", 2],
                        "cfg": 3.0)"),
              node_of("noise", "RandomNoise", R"("noise_seed": 8)"),
              node_of("method", "KSamplerSelect", R"("sampler_name": "euler")"),
              node_of("out", "SamplerCustomAdvanced",
                      R"("noise": ["noise", 0], "guider": ["guider", 0], "sampler":
                        ["method", 0], "sigmas": ["levels", 0], "latent_image": ["node", 3])"),
              ", ", kLook, "}")));
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_said_of_speakers) {
  const auto changed = [](std::string flow, const std::string& from, const std::string& to) {
    BOOST_TEST_REQUIRE(flow.find(from) != std::string::npos, from);
    return flow.replace(flow.find(from), from.size(), to);
  };
  const std::string flow = drawn(both(), 7);
  refused(changed(flow, R"("length": 9)", R"("length": 8)"), {"length is 8", "4 n + 1", "as 5"});
  refused(changed(flow, R"("motion_frame_count": 5)", R"("motion_frame_count": 7)"),
          {"previous_frames: there are 6", "motion_frame_count is 7"});
  refused(changed(flow, "wav2vec2_base", "wav2vec2_large"),
          {"audio_encoder_output_1", "3 layers' states of 128", "256 numbers in all"});
  refused(changed(flow, R"("mode.mask_1": ["mask_1", 0], )", ""), {"mode.mask_1", "Link"});
  refused(changed(flow, R"("mode.audio_encoder_output_2": ["answer", 0],)", ""),
          {"masks of two speakers and one sound"});
  refused(changed(flow, R"(["mask_1", 0])", R"(["pictures_mask", 0])")
              .insert(1, R"("pictures_mask": {"class_type": "ImageToMask", "inputs": {"image":
              ["pictures", 0], "channel": "red"}}, )"),
          {"mode.mask_1: one mask", "there are 6"});
  refused(changed(flow, R"(["mask_1", 0])", R"(["nobody", 0])")
              .insert(1, R"("nobody": {"class_type": "SolidMask", "inputs": {"value": 0.0, "width":
              10, "height": 8}}, )"),
          {"mode.mask_1: it is 0 at all tokens"});
  // Another latent than the node's own.
  refused(changed(flow, R"("latent_image": ["node", 3])", R"("latent_image": ["long", 0])")
              .insert(1, R"("long": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width":
              48, "height": 64, "length": 9, "batch_size": 1}}, )"),
          {"first frames of (1, 16, 2, 8, 8)", "WanInfiniteTalkToVideo"});
}

// A patch for pictures of another node, and one for speakers at that node.
BOOST_AUTO_TEST_CASE(a_model_takes_its_patch_from_the_node_it_is_for) {
  const auto with = [&](const char* node, const std::string& more) {
    return cat("{", nodes(), node_of("node", node, more),
               node_of("out", "KSampler",
                       R"("model": ["node", 0], "seed": 7, "steps": 1, "cfg": 1.0, "sampler_name":
                       "euler", "scheduler": "simple", "positive": ["one", 0], "negative":
                       ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0)"),
               node_of("empty", "EmptyHunyuanLatentVideo",
                       R"("width": 64, "height": 64, "length": 9, "batch_size": 1)"),
               ", ", kLook, "}");
  };
  refused(with("QwenImageDiffsynthControlnet",
               R"("model": ["model", 0], "model_patch": ["patch", 0], "vae": ["vae", 0], "image":
               ["first", 0], "strength": 1.0)"),
          {"wan-infinite-talk", "WanInfiniteTalkToVideo"});
  // Twice the same patch.
  std::string twice = drawn(cat(alone(), node_of("again", "WanInfiniteTalkToVideo",
                                                 R"("mode": "single_speaker", "model": ["node", 0],
          "model_patch": ["patch", 0], "positive": ["one", 0], "negative": ["two", 0], "vae":
          ["vae", 0], "width": 64, "height": 64, "length": 9, "audio_encoder_output_1":
          ["heard", 0], "motion_frame_count": 5, "audio_scale": 1.0)")),
                            7);
  const std::string from = R"("out": {"class_type": "KSampler", "inputs": {"model": ["node", 0])";
  twice.replace(twice.find(from), from.size(),
                R"("out": {"class_type": "KSampler", "inputs": {"model": ["again", 0])");
  refused(twice, {"it has a model patch already"});
}

BOOST_AUTO_TEST_SUITE_END()
