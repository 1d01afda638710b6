// WanSoundImageToVideo and WanSoundImageToVideoExtend, and what Wan 2.2 S2V draws of them, against
// PyTorch (../goldens/make_wan_sound_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

// Of the states that nodes make of a sound, and of earlier frames, those that the golden holds.
constexpr std::size_t kMomentStep = 7, kMotionStep = 61;

struct WanSoundNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_sound_nodes/expected.safetensors";
  TensorFile expected{golden};

  WanSoundNodes() {
    add("diffusion_models/wan2.2_s2v_14B", seeded_model("flow", true, "wan_sound_nodes"));
    add("audio_encoders/wav2vec2_large", seeded_model("stable", false, "sound_encoders"));
    add("audio_encoders/wav2vec2_base", seeded_model("plain", false, "sound_encoders"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  std::string nodes() const {
    const auto given = [&](const char* type, const char* name, const char* more) {
      return cat(R"({"class_type": "test.)", type, R"(", "inputs": {"path": ")", golden.string(),
                 R"(", "name": ")", name, "\"", more, "}}");
    };
    const auto some = [](const char* name, int first, int count) {
      return cat(", \"", name,
                 R"(": {"class_type": "ImageFromBatch", "inputs": {"image": ["pictures", 0],
                 "batch_index": )",
                 std::to_string(first), R"(, "length": )", std::to_string(count), "}}");
    };
    return cat(
        loaded("wan2.2_s2v_14B"), R"(, "one": )", text("one", golden), R"(, "two": )",
        text("two", golden), R"(, "pictures": )", given("image", "pictures", ""), R"(, "sound": )",
        given("sound", "waveform", R"(, "rate": 16000)"), some("three", 0, 3),
        some("two_last", 4, 2),
        R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}},
        "encoder": {"class_type": "AudioEncoderLoader", "inputs": {"audio_encoder_name":
        "wav2vec2_large.safetensors"}}, "heard": {"class_type": "AudioEncoderEncode", "inputs":
        {"audio_encoder": ["encoder", 0], "audio": ["sound", 0]}})");
  }
  static constexpr const char* kShown =
      R"(, "ref_image": ["pictures", 0], "control_video": ["three", 0])";
  static constexpr const char* kHeard = R"(, "audio_encoder_output": ["heard", 0])";
  static constexpr const char* kBegun = R"(, "ref_motion": ["two_last", 0])";

  static std::string first(const std::string& more, int width = 64) {
    return cat(
        R"(, "node": {"class_type": "WanSoundImageToVideo", "inputs": {"positive": ["one", 0],
      "negative": ["two", 0], "vae": ["vae", 0], "width": )",
        std::to_string(width), R"(, "height": 64, "length": 5, "batch_size": 1)", kShown, more,
        "}}");
  }
  static std::string next(const char* from) {
    return cat(R"(, "after": {"class_type": "WanSoundImageToVideoExtend", "inputs":
      {"positive": ["one", 0], "negative": ["two", 0], "vae": ["vae", 0], "length": 5,
      "video_latent": [")",
               from, "\", 0]", kShown, kHeard, "}}");
  }
  static std::string sampled(const char* name, const char* of, int seed,
                             const std::string& hints = "") {
    return cat(", \"", name,
               R"(": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": )",
               std::to_string(seed), R"(, "steps": 3, "cfg": 3.0, "sampler_name": "euler",
        "scheduler": "simple", "positive": [")",
               of, R"(", 0], "negative": [")", of, R"(", 1], "latent_image": [")", of,
               R"(", 2], "denoise": 1.0})", hints, "}");
  }
  // One part, or two of which the second goes on from the first.
  static std::string drawn(const std::string& nodes, const std::string& hints = "") {
    return cat("{", nodes, sampled("out", "node", 7, hints), ", ", kLook, "}");
  }
  std::string both_drawn(const std::string& hints = "") const {
    return cat("{", nodes(), first(kHeard), sampled("begin", "node", 7, hints), next("begin"),
               sampled("out", "after", 8, hints), ", ", kLook, "}");
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  static std::vector<float> some_of(const std::vector<float>& all, std::size_t step) {
    std::vector<float> some;
    for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
    return some;
  }
  heddle::Results told(const std::string& nodes, const char* node, int output) {
    return run_whole(
        cat("{", nodes, R"(, "entry": {"class_type": "test.first", "inputs": {"list": [")", node,
            "\", ", std::to_string(output),
            R"(]}}, "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
        {"entry.value"});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_sound_nodes, WanSoundNodes)

BOOST_AUTO_TEST_CASE(what_s2v_is_given_equals_pytorch) {
  const std::string all = nodes() + first(cat(kHeard, kBegun));
  for (const int output : {0, 1}) {
    const heddle::Results entry = told(all, "node", output);
    compare(entry.floats("entry.value", "reference_latents.0.samples"), "shown");
    compare(entry.floats("entry.value", "control_video"), "followed");
    compare(some_of(entry.floats("entry.value", "reference_motion"), kMotionStep), "motion");
    const std::vector<float> heard = entry.floats("entry.value", "audio_embed");
    BOOST_TEST_REQUIRE(heard.size() == std::size_t(4 * 128 * 8));
    if (output == 0)
      compare(some_of(heard, kMomentStep), "first.heard");
    else
      BOOST_TEST(heard == std::vector<float>(heard.size(), 0.0f));
  }
}

BOOST_AUTO_TEST_CASE(a_video_to_a_sound_equals_pytorch) {
  compare(run_whole(drawn(nodes() + first(kHeard)), {"out.LATENT"}).floats("out.LATENT", "samples"),
          "first.latent");
}

BOOST_AUTO_TEST_CASE(a_video_that_goes_on_to_a_sound_equals_pytorch) {
  const heddle::Results made = run_whole(both_drawn(), {"out.LATENT", "begin.LATENT"});
  compare(made.floats("out.LATENT", "samples"), "next.latent");
}

// Eight moments of 16 a second are heard in each part, and the sound has no more than 16.
BOOST_AUTO_TEST_CASE(behind_its_end_a_sound_is_left_out) {
  const auto empty = [](int length) {
    return cat(
        R"(, "empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 64, "height": 64, "length": )",
        std::to_string(length), R"(, "batch_size": 1}})");
  };
  compare(
      some_of(
          told(nodes() + empty(5) + next("empty"), "after", 0).floats("entry.value", "audio_embed"),
          kMomentStep),
      "next.heard");
  const heddle::Results late = told(nodes() + empty(13) + next("empty"), "after", 0);
  BOOST_CHECK_THROW(late.floats("entry.value", "audio_embed"), std::exception);
  BOOST_TEST(late.floats("entry.value", "reference_motion").size() == std::size_t(16 * 4 * 64));
}

BOOST_AUTO_TEST_CASE(a_video_behind_frames_without_a_sound_equals_pytorch) {
  compare(run_whole(drawn(nodes() + first(kBegun)), {"out.LATENT"}).floats("out.LATENT", "samples"),
          "begun.latent");
}

BOOST_AUTO_TEST_CASE(dividing_s2v_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}), both_drawn());
  const auto divided = [&](const char* mode) {
    return draw(options_for({"fake:0", "fake:1"}),
                both_drawn(cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")));
  };
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST(are_equal(alone, divided(mode)), mode);
  const double error = relative_error(divided("sequence"), alone);
  BOOST_TEST(error < kTolerance, "sequence: relative error " << error);
  BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}, std::uint64_t{24} << 20), both_drawn())),
             "little memory");
}

// Of texts, pictures and a sound that are known before.
BOOST_AUTO_TEST_CASE(a_sound_and_its_video_are_told_before_a_run) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  std::string known = cat(nodes(), first(cat(kHeard, kBegun)));
  for (const char* name : {"one", "two"}) {
    const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
    known.insert(known.find(begin) + begin.size(), "given_");
  }
  const auto replace = [&](const std::string& name, const std::string& by) {
    const std::size_t from = known.find(cat("\"", name, R"(": {)")),
                      to = known.find("}}", from) + 2;
    known.replace(from, to - from, cat("\"", name, "\": ", by));
  };
  replace(
      "pictures",
      R"({"class_type": "EmptyImage", "inputs": {"width": 10, "height": 8, "batch_size": 6, "color": 5}})");
  replace(
      "sound",
      R"({"class_type": "EmptyAudio", "inputs": {"duration": 0.06, "sample_rate": 16000, "channels": 1}})");
  check_inference(told, cat("{", known, sampled("begin", "node", 7), next("begin"),
                            sampled("out", "after", 8), ", ", kLook, "}"));
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_said_of_s2v) {
  const auto refused = [&](const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto changed = [](std::string flow, const std::string& from, const std::string& to) {
    return flow.replace(flow.find(from), from.size(), to);
  };
  const std::string flow = drawn(nodes() + first(kHeard));
  refused(
      changed(flow, R"("latent_image": ["node", 2])", R"("latent_image": ["other", 0])")
          .insert(
              1,
              R"("other": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 64, "height": 64, "length": 9, "batch_size": 1}}, )"),
      {"control_video", "(1, 16, 2, 8, 8)", "(3, 8, 8)"});
  refused(changed(flow, "wav2vec2_large", "wav2vec2_base"),
          {"audio_embed", "(1, 3, 128, 8)", "4 states of 128", "wav2vec2_large_english"});
  // The frames before a video are read in squares of eight cells.
  refused(drawn(nodes() + first(kBegun, 48)), {"8x6 cells", "larger"});
  refused(
      changed(flow, R"("inputs": {"model": ["model", 0])", R"("inputs": {"model": ["windows", 0])")
          .insert(
              1,
              R"("windows": {"class_type": "ContextWindowsManual", "inputs": {"model": ["model", 0],
        "context_length": 1, "context_overlap": 0, "context_schedule": "standard_static",
        "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid", "dim": 2,
        "freenoise": false, "cond_retain_index_list": "", "split_conds_to_windows": false,
        "latent_retain_index_list": "", "causal_window_fix": true}}, )"),
      {"a sound or frames before a video", "Use one of the two"});
}

BOOST_AUTO_TEST_SUITE_END()
