// Wan from texts to the latent of a video, with ComfyUI's nodes, over models whose weights follow
// from their names, against PyTorch (../goldens/make_wan_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;

namespace {

struct WanWorkflow : PlacedFixture {
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/wan/expected.safetensors";
  TensorFile expected{golden};

  WanWorkflow() {
    add("diffusion_models/wan2.1_t2v_1.3B_fp16", seeded_model("flow", false, "wan"));
  }

  std::string nodes() const {
    return heddle::engine::cat(loaded("wan2.1_t2v_1.3B_fp16"), R"(, "one": )", text("one", golden),
                               R"(, "two": )", text("two", golden));
  }
  std::string flow(const char* model = "model", const char* size = kSize,
                   const std::string& windows = manual(3, "standard_static", false, "")) const {
    return heddle::engine::cat(
        "{", nodes(), R"(, "empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {)", size,
        R"(, "batch_size": 1}}, "windows": {"class_type": )", windows, R"(
        "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid",
        "split_conds_to_windows": false}},
      "out": {"class_type": "KSampler", "inputs": {"model": [")",
        model, R"(", 0], "seed": 7, "steps": 3,
        "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0}},
      "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  void compare(const std::string& drawn, const std::string& name) {
    const heddle::Results results = run_whole(drawn, {"out.LATENT"});
    const double error =
        relative_error(results.floats("out.LATENT", "samples"), expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }

  // Of frames of the latent.
  static std::string manual(int length, const char* schedule, bool repeats, const char* retained) {
    return heddle::engine::cat(
        R"("ContextWindowsManual", "inputs": {"model": ["model", 0], "context_length": )", length,
        R"(, "context_overlap": 1, "context_schedule": ")", schedule,
        R"(", "dim": 2, "freenoise": )", repeats ? "true" : "false",
        R"(, "cond_retain_index_list": ")", retained, R"(", "latent_retain_index_list": ")",
        retained, R"(", "causal_window_fix": true,)");
  }
  // Of frames of the video.
  static std::string in_frames(const char* type, const char* length, const char* overlap,
                               const char* more) {
    return heddle::engine::cat("\"", type,
                               R"(", "inputs": {"model": ["model", 0], "context_length": )", length,
                               R"(, "context_overlap": )", overlap, ", ", more, ",");
  }

  static constexpr const char* kSize = R"("width": 64, "height": 48, "length": 9)";
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_workflows, WanWorkflow)

BOOST_AUTO_TEST_CASE(from_texts_to_the_latent_of_a_video_equals_pytorch) {
  compare(flow(), "flow.latent");
}

// ComfyUI counts Wan's layers as double ones.
BOOST_AUTO_TEST_CASE(guidance_away_from_a_model_without_a_layer_equals_pytorch) {
  const auto skipped = [&](const char* layers) {
    std::string drawn = flow("less");
    const std::string_view at = R"("windows":)";
    drawn.insert(
        drawn.find(at),
        heddle::engine::cat(
            R"("less": {"class_type": "SkipLayerGuidanceDiT", "inputs": {"model": ["model", 0], )",
            layers,
            R"(, "scale": 2.5, "start_percent": 0.0, "end_percent": 1.0, "rescaling_scale": 0.0}}, )"));
    return drawn;
  };
  compare(skipped(R"("double_layers": "1", "single_layers": "")"), "skipped.latent");
  compare(skipped(R"("double_layers": "", "single_layers": "1")"), "flow.latent");
}

// Five frames, of which the model sees three at a time, and the one before them.
BOOST_AUTO_TEST_CASE(a_video_in_context_windows_equals_pytorch) {
  compare(flow("windows", R"("width": 48, "height": 32, "length": 17)"), "windows.latent");
}

BOOST_AUTO_TEST_CASE(windows_in_frames_of_the_video_are_those_of_the_latent) {
  constexpr const char* kLong = R"("width": 48, "height": 32, "length": 17)";
  constexpr const char* kPlain =
      R"("context_schedule": "standard_static", "freenoise": false, "retain_first_frame": false)";
  compare(flow("windows", kLong, in_frames("WanContextWindowsManual", "9", "7", kPlain)),
          "windows.latent");
  const auto drawn = [&](const std::string& windows) {
    return run_whole(flow("windows", kLong, windows), {"out.LATENT"})
        .floats("out.LATENT", "samples");
  };
  constexpr const char* kOther =
      R"("context_schedule": "standard_uniform", "freenoise": true, "retain_first_frame": true)";
  const std::vector<float> wanted = drawn(manual(3, "standard_uniform", true, "0"));
  BOOST_TEST((drawn(in_frames("LTXVContextWindows", "17", "8", kOther)) == wanted));
  // It retains that of pictures beside the point alone, of which there are none here.
  BOOST_TEST((drawn(in_frames("WanContextWindowsManual", "9", "4", kOther)) != wanted));
}

// A latent of pictures is one of videos of one frame.
BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  hold([&](const std::string& hints) { return drawn_of(nodes(), hints); },
       {"layers", "data", "cfg"}, {"sequence"}, 6 << 20);
}

// 3 x 2 tokens of a frame, five frames.
BOOST_AUTO_TEST_CASE(tokens_are_divided_in_every_set) {
  hold_tokens(
      [&](const std::string& hints) {
        std::string whole = flow("model", R"("width": 48, "height": 32, "length": 17)");
        const std::string from = R"("denoise": 1.0})";
        return whole.replace(whole.find(from), from.size(), from + hints);
      },
      2);
}

BOOST_AUTO_TEST_SUITE_END()
