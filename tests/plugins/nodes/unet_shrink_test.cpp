// PatchModelAddDownscale, against PyTorch (../goldens/make_shrink_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/unet_patch_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct Shrinking : PatchedUnet {
  const TensorFile made{tests_folder() / "plugins/goldens/unet/shrinks.safetensors"};

  static std::string shrinking(int block, const char* rest, const char* from = "loaded",
                               const char* to = "model") {
    return patch("PatchModelAddDownscale", cat(R"("block_number": )", block, ", ", rest), from, to);
  }
  static constexpr const char* kAfter =
      R"("downscale_factor": 2, "start_percent": 0, "end_percent": 0.5,
         "downscale_after_skip": true, "downscale_method": "bicubic", "upscale_method": "bicubic")";
  static constexpr const char* kBefore =
      R"("downscale_factor": 2, "start_percent": 0, "end_percent": 0.5,
         "downscale_after_skip": false, "downscale_method": "bicubic",
         "upscale_method": "bilinear")";
  static constexpr const char* kLate =
      R"("downscale_factor": 1.5, "start_percent": 0.3, "end_percent": 0.7,
         "downscale_after_skip": true, "downscale_method": "area",
         "upscale_method": "nearest-exact")";
  static constexpr const char* kUneven =
      R"("downscale_factor": 1.7, "start_percent": 0, "end_percent": 1,
         "downscale_after_skip": false, "downscale_method": "bilinear", "upscale_method": "area")";
  static constexpr const char* kLarger =
      R"("downscale_factor": 0.6, "start_percent": 0, "end_percent": 1,
         "downscale_after_skip": true, "downscale_method": "nearest-exact",
         "upscale_method": "bicubic")";
  static constexpr const char* kTurned =
      R"("downscale_factor": 1.6, "start_percent": 0, "end_percent": 1,
         "downscale_after_skip": true, "downscale_method": "bislerp", "upscale_method": "bislerp")";
  static std::string two() {
    return shrinking(3, kAfter, "loaded", "once") + shrinking(1, kLate, "once");
  }

  // Four steps.
  std::string longer(const std::string& kind, const std::string& patches) const {
    return replaced(flow(kind, patches), R"("steps": 2)", R"("steps": 4)");
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  }
  std::vector<float> drawn(const std::string& kind, const std::string& patches) {
    return run_whole(longer(kind, patches), {"drawn.LATENT"}).floats("drawn.LATENT", "samples");
  }
  void is(const std::vector<float>& latent, const std::string& name) {
    const double error = relative_error(latent, made.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
    const std::string kind = name.substr(0, name.find('.'));
    BOOST_TEST(relative_error(latent, made.floats(kind + ".plain")) > 100 * kTolerance, name);
  }
  void has(const std::string& text, const char* part) {
    BOOST_TEST(text.find(part) != std::string::npos, text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unet_shrinks, Shrinking)

BOOST_AUTO_TEST_CASE(in_its_range_it_equals_pytorch) {
  for (const char* kind : {"sd1", "sdxl"}) {
    is(drawn(kind, shrinking(3, kAfter)), cat(kind, ".after"));
    is(drawn(kind, shrinking(3, kBefore)), cat(kind, ".before"));
    is(drawn(kind, shrinking(1, kLate)), cat(kind, ".late"));
  }
}

BOOST_AUTO_TEST_CASE(factors_that_are_not_whole_equal_pytorch) {
  for (const char* kind : {"sd1", "sdxl"}) {
    is(drawn(kind, shrinking(2, kUneven)), cat(kind, ".uneven"));
    is(drawn(kind, shrinking(4, kLarger)), cat(kind, ".larger"));
  }
}

// Pixels in all directions, in opposite ones, and of no length.
BOOST_AUTO_TEST_CASE(pictures_turned_by_angles_equal_pytorch) {
  for (const char* kind : {"sd1", "sdxl"})
    is(drawn(kind, shrinking(3, kTurned)), cat(kind, ".turned"));
  const FileTensor v = seeded_tensor("in.v", {32, 1, 1, 1}),
                   w = seeded_tensor("in.w", {1, 4, 3, 3});
  for (const bool is_line : {true, false}) {
    std::vector<FileTensor> tensors = unet_model("sdxl");
    for (FileTensor& tensor : tensors) {
      const bool is_first = tensor.name == "conv_in.weight";
      if (!is_first && tensor.name != "conv_in.bias" &&
          !tensor.name.starts_with("down_blocks.0.resnets.0.conv2."))
        continue;
      std::fill(tensor.bytes.begin(), tensor.bytes.end(), 0);
      if (!is_first || !is_line) continue;
      const auto* const rows = reinterpret_cast<const float*>(v.bytes.data());
      const auto* const columns = reinterpret_cast<const float*>(w.bytes.data());
      auto* const to = reinterpret_cast<float*>(tensor.bytes.data());
      for (std::size_t i = 0; i < 32 * 36; ++i) to[i] = rows[i / 36] * columns[i % 36];
    }
    add_kind("sdxl");
    write_file("diffusion_models/sdxl", tensors);
    is(drawn("sdxl", shrinking(1, kTurned)), is_line ? "sdxl.line" : "sdxl.nowhere");
  }
}

BOOST_AUTO_TEST_CASE(two_of_them_equal_pytorch) {
  for (const char* kind : {"sd1", "sdxl"}) is(drawn(kind, two()), cat(kind, ".two"));
}

// Residuals of another size are left out.
BOOST_AUTO_TEST_CASE(beside_a_control_net_it_equals_pytorch) {
  write_file("controlnet/sd1", unet_control("sd1"));
  const std::string controls =
      node("net", "ControlNetLoader", R"("control_net_name": "sd1.safetensors")") +
      node("hint", "EmptyImage",
           R"("width": 128, "height": 64, "batch_size": 1, "color": 8421504)") +
      node("steered", "ControlNetApplyAdvanced",
           R"("positive": ["one", 0], "negative": ["two", 0], "control_net": ["net", 0],
              "image": ["hint", 0], "strength": 0.3, "start_percent": 0, "end_percent": 1)");
  const std::string steered =
      replaced(longer("sd1", shrinking(3, kAfter) + controls),
               R"("positive": ["one", 0], "negative": ["two", 0], "latent_image")",
               R"("positive": ["steered", 0], "negative": ["steered", 1], "latent_image")");
  is(run_whole(steered, {"drawn.LATENT"}).floats("drawn.LATENT", "samples"), "sd1.controlled");
}

BOOST_AUTO_TEST_CASE(a_block_that_there_is_not_changes_nothing) {
  const double error =
      relative_error(drawn("sd1", shrinking(32, kAfter)), made.floats("sd1.plain"));
  BOOST_TEST(error < kTolerance, "changed by " << error);
}

BOOST_AUTO_TEST_CASE(dividing_keeps_the_bytes) { hold("sd1", shrinking(3, kAfter), 2 << 20); }
BOOST_AUTO_TEST_CASE(dividing_keeps_the_bytes_of_all, *boost::unit_test::label("long")) {
  hold("sdxl", shrinking(3, kTurned, "loaded", "turned") + shrinking(1, kLate, "turned"), 4 << 20);
}

// One window is the whole picture.
BOOST_AUTO_TEST_CASE(it_goes_together_with_windows) {
  const std::string windows =
      shrinking(3, kAfter, "loaded", "shrunk") +
      patch("ContextWindowsManual",
            R"("context_length": 16, "context_overlap": 0, "context_schedule": "standard_static",
               "context_stride": 1, "closed_loop": false, "fuse_method": "pyramid", "dim": 3)",
            "shrunk");
  is(drawn("sd1", windows), "sd1.after");
}

BOOST_AUTO_TEST_CASE(the_calls_are_told_before) {
  write("sd1");
  const std::string whole =
      node("loaded", "CheckpointLoaderSimple", R"("ckpt_name": "drawn.safetensors")") + two() +
      texts(R"(["loaded", 1])") + R"("drawn": )" + ksampler(sampler("4.0", "euler", "normal", 2)) +
      R"(, "look": {"class_type": "test.look", "inputs": {"value": ["drawn", 0]}})";
  heddle::EngineOptions again = engine_options();
  again.model_dirs = {folder / "models"};
  heddle::Engine::Data data{again};
  check_inference(data, "{" + whole + "}");
}

BOOST_AUTO_TEST_CASE(what_leaves_nothing_is_refused) {
  std::string small = replaced(longer("sd1", shrinking(3, R"("downscale_factor": 9)")),
                               R"("width": 128, "height": 64)", R"("width": 32, "height": 64)");
  has(engine_refusal([&] { run_whole(small, {}); }), "Use a smaller downscale_factor");
}

BOOST_AUTO_TEST_SUITE_END()
