// The nodes of Wan Fun's cameras and of Wan 2.2 Fun Control, and what the models draw of them,
// against PyTorch (../goldens/make_wan_fun_goldens.py).
#include <algorithm>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct WanFunNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_fun/expected.safetensors";
  TensorFile expected{golden};

  WanFunNodes() {
    for (const std::string kind : {"camera", "reference"})
      add("diffusion_models/" + kind, seeded_model("flow_" + kind, false, "wan_fun"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  std::string nodes(const std::string& kind) const {
    return cat(
        loaded(kind), R"(, "one": )", text("one", golden), R"(, "two": )", text("two", golden),
        R"(, "pictures": {"class_type": "test.image", "inputs": {"path": ")", golden.string(),
        R"(", "name": "pictures"}}, "begin": {"class_type": "ImageFromBatch", "inputs": {"image": ["pictures", 0], "batch_index": 0, "length": 2}})",
        R"(, "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "wan_2.1_vae.safetensors"}})",
        camera(kZoom, 48, 32, 9));
  }
  static std::string camera(const char* more, int width, int height, int length) {
    return cat(R"(, "camera": {"class_type": "WanCameraEmbedding", "inputs": {"width": )",
               std::to_string(width), R"(, "height": )", std::to_string(height), R"(, "length": )",
               std::to_string(length), more, "}}");
  }
  static std::string node(const std::string& type, const std::string& more) {
    return cat(R"(, "node": {"class_type": ")", type, R"(", "inputs": {"positive": ["one", 0],
      "negative": ["two", 0], "vae": ["vae", 0], "width": 48, "height": 32, "length": 9,
      "batch_size": 1)",
               more, "}}");
  }
  // Of a kind with all that it may be given.
  std::string given(const std::string& kind) const {
    const bool is_camera = kind == "camera";
    return nodes(kind) + node(is_camera ? "WanCameraImageToVideo" : "Wan22FunControlToVideo",
                              is_camera ? kBegun : kShown);
  }
  static std::string drawn(const std::string& nodes, const std::string& hints = "") {
    return cat("{", nodes, R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0],
        "seed": 7, "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple",
        "positive": ["node", 0], "negative": ["node", 1], "latent_image": ["node", 2],
        "denoise": 1.0})",
               hints,
               R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  heddle::Results told(const std::string& nodes, int output) {
    return run_whole(
        cat("{", nodes, R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["node", )",
            std::to_string(output),
            R"(]}}, "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
        {"entry.value"});
  }
  void has_refusal(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }

  static constexpr const char* kZoom = R"(, "camera_pose": "Zoom In")";
  static constexpr const char* kBegun =
      R"(, "start_image": ["begin", 0], "camera_conditions": ["camera", 0])";
  static constexpr const char* kShown =
      R"(, "control_video": ["pictures", 0], "ref_image": ["pictures", 0])";
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_fun_nodes, WanFunNodes)

BOOST_AUTO_TEST_CASE(rays_equal_pytorch) {
  const auto rays = [&](const char* more, int width, int height, const char* name) {
    const std::string flow =
        cat(R"({"look": {"class_type": "test.look", "inputs": {"value": ["camera", 0]}})",
            camera(more, width, height, 5), "}");
    compare(run_whole(flow, {"camera.camera_embedding"}).floats("camera.camera_embedding"), name);
  };
  rays(R"(, "camera_pose": "Zoom Out", "speed": 1.5, "fx": 0.7, "fy": 0.4, "cx": 0.45, "cy": 0.6)",
       24, 16, "rays.out");
  rays(R"x(, "camera_pose": "ClockWise (CW)", "speed": 2.0)x", 24, 16, "rays.clockwise");
  rays(R"(, "camera_pose": "Pan Up")", 16, 32, "rays.tall");
}

BOOST_AUTO_TEST_CASE(a_video_along_a_camera_equals_pytorch) {
  const std::string nodes = given("camera");
  for (const int output : {0, 1}) {
    const heddle::Results entry = told(nodes, output);
    compare(entry.floats("entry.value", "concat_latent_image"), "camera.concat");
    // Of the first five frames of pixels, the first of which counts four times.
    std::vector<float> mask(std::size_t(4 * 3 * 24), 1.0f);
    for (std::size_t c = 0; c < 4; ++c)
      for (std::size_t t = 0; t < (c == 0 ? 2u : 1u); ++t)
        std::fill_n(mask.begin() + std::ptrdiff_t((3 * c + t) * 24), 24, 0.0f);
    BOOST_TEST(entry.floats("entry.value", "concat_mask") == mask);
  }
  compare(run_whole(drawn(nodes), {"out.LATENT"}).floats("out.LATENT", "samples"),
          "flow_camera.latent");
}

BOOST_AUTO_TEST_CASE(a_video_that_follows_and_shows_a_picture_equals_pytorch) {
  const std::string nodes = given("reference");
  const heddle::Results entry = told(nodes, 1);
  compare(entry.floats("entry.value", "concat_latent_image"), "reference.concat");
  compare(entry.floats("entry.value", "reference_latents.0.samples"), "reference.shown");
  BOOST_TEST(entry.floats("entry.value", "concat_mask") == std::vector<float>(4 * 3 * 24, 1.0f));
  compare(run_whole(drawn(nodes), {"out.LATENT"}).floats("out.LATENT", "samples"),
          "flow_reference.latent");
}

BOOST_AUTO_TEST_CASE(dividing_fun_keeps_its_bytes_or_nearly_its_numbers) {
  for (const std::string kind : {"camera", "reference"}) {
    const std::string nodes = given(kind);
    // Less than all weights: the camera's are larger.
    const std::uint64_t budget = (kind == "camera" ? 16 : 6) << 20;
    const std::vector<float> alone = draw(options_for({"cpu:0"}), drawn(nodes));
    const auto divided = [&](const char* mode) {
      return draw(options_for({"fake:0", "fake:1"}),
                  drawn(nodes, cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")));
    };
    for (const char* mode : {"layers", "cfg"})
      BOOST_TEST(are_equal(alone, divided(mode)), kind << ": " << mode);
    const double error = relative_error(divided("sequence"), alone);
    BOOST_TEST(error < kTolerance, kind << ", sequence: relative error " << error);
    BOOST_TEST(are_equal(alone, draw(options_for({"fake:0"}, budget), drawn(nodes))),
               kind << ": little memory");
  }
}

// Of texts and a picture that are known before.
BOOST_AUTO_TEST_CASE(cameras_and_pictures_are_told_before_a_run) {
  heddle::Engine::Data told(options_for({"cpu:0"}));
  for (const std::string kind : {"camera", "reference"}) {
    std::string known = given(kind);
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      known.insert(known.find(begin) + begin.size(), "given_");
    }
    const std::size_t from = known.find(R"("pictures": {)"), to = known.find("}}", from) + 2;
    known.replace(
        from, to - from,
        R"("pictures": {"class_type": "EmptyImage", "inputs": {"width": 28, "height": 20, "batch_size": 5, "color": 5}})");
    check_inference(told, drawn(known));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_said_of_fun) {
  const auto changed = [](std::string flow, const std::string& from, const std::string& to) {
    return flow.replace(flow.find(from), from.size(), to);
  };
  const std::string flow = drawn(given("camera"));
  has_refusal(changed(flow, R"("length": 9, "camera_pose")", R"("length": 5, "camera_pose")"),
              {"camera_conditions", "2 frames of 32x48", "3 frames of 32x48"});
  has_refusal(changed(flow, R"("length": 9, "camera_pose")", R"("length": 8, "camera_pose")"),
              {"length 8", "4 n + 1"});
  has_refusal(changed(flow, kZoom, R"(, "camera_pose": "Zoom In", "fx": 0.0)"), {"fx 0", "above"});
  const std::string shown = drawn(given("reference"));
  has_refusal(
      changed(shown, R"("latent_image": ["node", 2])", R"("latent_image": ["other", 0])")
          .insert(
              1,
              R"("other": {"class_type": "EmptyHunyuanLatentVideo", "inputs": {"width": 64, "height": 32, "length": 9, "batch_size": 1}}, )"),
      {"reference picture", "4x6", "4x8"});
}

BOOST_AUTO_TEST_SUITE_END()
