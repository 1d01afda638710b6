// Wan 2.2's 5B with ComfyUI's nodes: its autoencoder on pictures and videos, and videos that begin
// with a picture, against PyTorch (../goldens/make_wan22_goldens.py).
#include <algorithm>
#include <cmath>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Wan22Fixture : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan22/expected.safetensors";
  TensorFile expected{golden};
  // Some twenty convolutions in f32.
  static constexpr double kWan22Tolerance = 5e-6;

  Wan22Fixture() {
    add("diffusion_models/wan2.2_ti2v_5B_fp16", seeded_model("flow", false, "wan22"));
    add("vae/wan2.2_vae", seeded_model("vae", false, "wan22"));
    add("vae/wan2.2_diffusers", seeded_model("vae", true, "wan22"));
  }
  static std::string vae(const std::string& file = "wan2.2_vae") {
    return cat(R"("vae": {"class_type": "VAELoader", "inputs": {"vae_name": ")", file,
               R"(.safetensors"}})");
  }
  std::string given(const char* type, const std::string& name) const {
    return cat(R"({"class_type": "test.)", type, R"(", "inputs": {"path": ")", golden.string(),
               R"(", "name": ")", name, R"("}})");
  }
  std::string coded(const char* type, const char* port, const std::string& in,
                    const std::string& file = "wan2.2_vae") const {
    return cat(
        "{", vae(file), R"(, "in": )", in, R"(, "out": {"class_type": ")", type,
        R"(", "inputs": {"vae": ["vae", 0], ")", port,
        R"(": ["in", 0]}}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  void hold(const std::vector<float>& made, const std::vector<float>& wanted,
            const std::string& what, double tolerance) const {
    const double error = relative_error(made, wanted);
    BOOST_TEST_MESSAGE(what << ": relative error " << error);
    BOOST_TEST(error < tolerance, what << ": relative error " << error);
  }
  // "node" makes the latent.
  std::string node(const std::string& more, int batch = 1) const {
    return cat(vae(), R"(, "start": )", given("image", "start"),
               R"(, "node": {"class_type": "Wan22ImageToVideoLatent", "inputs": {"vae": ["vae", 0],
      "width": 64, "height": 32, "length": 9, "batch_size": )",
               std::to_string(batch), more, "}}");
  }
  std::string drawn(const std::string& nodes, const std::string& hints = "") const {
    return cat("{", loaded("wan2.2_ti2v_5B_fp16"), ", ", nodes, R"(, "one": )", text("one", golden),
               R"(, "two": )", text("two", golden),
               R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0],
        "seed": 7, "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["node", 0], "denoise": 1.0})",
               hints,
               R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  std::string begun(const std::string& hints = "") const { return drawn(node(kStart), hints); }
  void compare_video(const std::string& flow, const std::string& name) {
    hold(run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples"), expected.floats(name),
         name, kTolerance);
  }

  // The first of the pictures.
  static constexpr const char* kStart =
      R"(, "start_image": ["first", 0]}}, "first": {"class_type": "ImageFromBatch", "inputs": {"image": ["start", 0], "batch_index": 0, "length": 1)";
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan22, Wan22Fixture)

BOOST_AUTO_TEST_CASE(pictures_and_videos_are_coded_as_by_diffusers_under_both_names) {
  for (const std::string clip : {"1.", "5.", "9."})
    for (const char* file : {"wan2.2_vae", "wan2.2_diffusers"}) {
      hold(run_whole(coded("VAEDecode", "samples", given("latent", clip + "latent"), file),
                     {"out.IMAGE"})
               .floats("out.IMAGE"),
           expected.floats(clip + "decoded"), clip + file, kWan22Tolerance);
      hold(run_whole(coded("VAEEncode", "pixels", given("image", clip + "frames"), file),
                     {"out.LATENT"})
               .floats("out.LATENT", "samples"),
           expected.floats(clip + "mean"), clip + file, kWan22Tolerance);
    }
}

BOOST_AUTO_TEST_CASE(a_video_of_texts_alone_equals_pytorch) {
  heddle::Results results = run_whole(drawn(node("")), {"out.LATENT", "node.LATENT"});
  BOOST_TEST(results.floats("node.LATENT", "samples") == std::vector<float>(48 * 3 * 2 * 4, 0.0f));
  compare_video(drawn(node("")), "free.latent");
}

BOOST_AUTO_TEST_CASE(a_given_first_frame_stands_in_the_latent_and_in_what_is_drawn) {
  const heddle::Results latent =
      run_whole(cat("{", node(kStart, 2),
                    R"(, "look": {"class_type": "test.look", "inputs": {"value": ["node", 0]}}})"),
                {"node.LATENT"});
  std::vector<float> twice = expected.floats("begun"), mask;
  const std::vector<float> once = twice;
  twice.insert(twice.end(), once.begin(), once.end());
  hold(latent.floats("node.LATENT", "samples"), twice, "begun", kWan22Tolerance);
  for (const float share : {0.0f, 1.0f, 1.0f, 0.0f, 1.0f, 1.0f})
    mask.insert(mask.end(), 2 * 4, share);
  BOOST_TEST(latent.floats("node.LATENT", "noise_mask") == mask);
  compare_video(begun(), "begun.latent");
}

// A frame's level is the mean of what the mask leaves of it.
BOOST_AUTO_TEST_CASE(a_mask_that_differs_within_a_frame_equals_pytorch) {
  std::string flow = drawn(cat(
      node(kStart), R"(, "mask": )", given("mask", "uneven"),
      R"(, "masked": {"class_type": "SetLatentNoiseMask", "inputs": {"samples": ["node", 0], "mask": ["mask", 0]}})"));
  flow.replace(flow.find(R"("latent_image": ["node", 0])"), 27, R"("latent_image": ["masked", 0])");
  compare_video(flow, "uneven.latent");
}

BOOST_AUTO_TEST_CASE(dividing_the_5b_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}), begun());
  const auto divided = [&](const char* mode) {
    return draw(options_for({"fake:0", "fake:1"}),
                begun(cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")));
  };
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST(are_equal(alone, divided(mode)), mode);
  const double error = relative_error(divided("sequence"), alone);
  BOOST_TEST(error < kTolerance, "sequence: relative error " << error);
  BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}, 8 << 20), begun())), "little memory");
}

BOOST_AUTO_TEST_CASE(latents_and_calls_of_the_5b_are_told_before_a_run) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  constexpr const char* kTold =
      R"(, "start_image": ["told", 0]}}, "told": {"class_type": "EmptyImage", "inputs": {"width": 28, "height": 20, "batch_size": 5, "color": 5)";
  for (const char* start : {"", kTold}) {
    std::string flow = drawn(node(start));
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      flow.insert(flow.find(begin) + begin.size(), "given_");
    }
    check_inference(told, flow);
  }
}

BOOST_AUTO_TEST_SUITE_END()
