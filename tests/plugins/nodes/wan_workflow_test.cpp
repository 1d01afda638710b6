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
  std::string flow(const char* model = "model", const char* size = kSize) const {
    return heddle::engine::cat(
        "{", nodes(), R"(, "empty": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {)", size,
        R"(, "batch_size": 1}}, "windows": {"class_type": "ContextWindowsManual", "inputs": {"model": ["model", 0],
        "context_length": 3, "context_overlap": 1, "context_schedule": "standard_static",
        "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid", "dim": 2,
        "freenoise": false, "cond_retain_index_list": "", "split_conds_to_windows": false,
        "latent_retain_index_list": "", "causal_window_fix": true}},
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

  static constexpr const char* kSize = R"("width": 64, "height": 48, "length": 9)";
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_workflows, WanWorkflow)

BOOST_AUTO_TEST_CASE(from_texts_to_the_latent_of_a_video_equals_pytorch) {
  compare(flow(), "flow.latent");
}

// Five frames, of which the model sees three at a time, and the one before them.
BOOST_AUTO_TEST_CASE(a_video_in_context_windows_equals_pytorch) {
  compare(flow("windows", R"("width": 48, "height": 32, "length": 17)"), "windows.latent");
}

// A latent of pictures is one of videos of one frame.
BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  hold([&](const std::string& hints) { return drawn_of(nodes(), hints); },
       {"layers", "data", "cfg"}, {"sequence"}, 6 << 20);
}

BOOST_AUTO_TEST_SUITE_END()
