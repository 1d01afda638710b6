// HunyuanVideo 1.5 from conditionings to the latent of a video, with ComfyUI's nodes, over models
// whose weights follow from their names, against PyTorch (../goldens/make_hunyuan_goldens.py); and
// the node that tells it which frames are given (../goldens/make_hunyuan15_vae_goldens.py).
#include <algorithm>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct HunyuanWorkflow : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/hunyuan/expected.safetensors";
  TensorFile expected{golden};

  HunyuanWorkflow() {
    add("diffusion_models/hunyuanvideo1.5_720p_i2v_fp16", seeded_model("flow", false, "hunyuan"));
  }
  std::string nodes() const {
    return cat(loaded("hunyuanvideo1.5_720p_i2v_fp16"), R"(, "one": )", text("one", golden),
               R"(, "two": )", text("two", golden));
  }
  std::string flow(const std::string& hints = "") const {
    return cat(
        "{", nodes(),
        R"(, "empty": {"class_type": "EmptyHunyuanVideo15Latent", "inputs": {"width": 64, "height": 48, "length": 5, "batch_size": 1}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7, "steps": 3,
        "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["one", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
};

struct Hunyuan15Frames : PlacedFixture {
  const std::filesystem::path golden = tests_folder() /
                                       "plugins/goldens/hunyuan15_vae/expected.safetensors",
                              texts =
                                  tests_folder() / "plugins/goldens/hunyuan/expected.safetensors";
  TensorFile expected{golden};

  Hunyuan15Frames() {
    add("vae/hunyuanvideo15_vae_fp16", seeded_model("vae", false, "hunyuan15_vae"));
  }
  std::vector<float> told(const char* pictures, int output, const char* path) {
    return run_whole(
               cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "hunyuanvideo15_vae_fp16.safetensors"}},
      "one": )",
                   text("two", texts),
                   R"(, "start": {"class_type": "test.image", "inputs": {"path": ")",
                   golden.string(), R"(", "name": ")", pictures,
                   R"("}}, "node": {"class_type": "HunyuanVideo15ImageToVideo", "inputs": {"positive": ["one", 0],
        "negative": ["one", 0], "vae": ["vae", 0], "width": 32, "height": 16, "length": 9,
        "batch_size": 1, "start_image": ["start", 0]}},
      "entry": {"class_type": "test.first", "inputs": {"list": ["node", )",
                   std::to_string(output),
                   R"(]}}, "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
               {"entry.value"})
        .floats("entry.value", path);
  }
  // Frames [begin, end) of three of a latent of four channels.
  static std::vector<float> frames_of(const std::vector<float>& latent, std::size_t begin,
                                      std::size_t end) {
    constexpr std::size_t kArea = 2, kChannels = 4;
    std::vector<float> frames;
    for (std::size_t c = 0; c < kChannels; ++c) {
      const auto first = latent.begin() + std::ptrdiff_t(3 * c * kArea);
      frames.insert(frames.end(), first + std::ptrdiff_t(begin * kArea),
                    first + std::ptrdiff_t(end * kArea));
    }
    return frames;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hunyuan_workflows, HunyuanWorkflow)

BOOST_AUTO_TEST_CASE(from_all_that_it_reads_to_the_latent_of_a_video_equals_pytorch) {
  const heddle::Results results = run_whole(flow(), {"out.LATENT"});
  const double error =
      relative_error(results.floats("out.LATENT", "samples"), expected.floats("flow.latent"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kTolerance, "relative error " << error);
}

BOOST_AUTO_TEST_CASE(dividing_the_model_keeps_its_bytes_or_nearly_its_numbers) {
  hold([&](const std::string& hints) { return flow(hints); }, {"layers", "cfg"},
       {"sequence", "tensor"}, 17 << 20, 32 * 2 * 3 * 4);
  hold_tokens([&](const std::string& hints) { return flow(hints); }, 3);
}

// Two videos, whose latents are mixed with noise; the model is told two timesteps.
BOOST_AUTO_TEST_CASE(super_resolution_equals_pytorch) {
  add("diffusion_models/sharpened", seeded_model("sharpened", false, "hunyuan"));
  const auto flow = [&](const std::string& hints) {
    return cat(
        "{", loaded("sharpened"), R"(, "bare": )", text("two", golden),
        R"(, "given": {"class_type": "test.latent", "inputs": {"name": "sharpened.given", "path": ")",
        golden.string(),
        R"("}}, "shown": {"class_type": "HunyuanVideo15SuperResolution", "inputs": {"positive": ["bare", 0],
        "negative": ["bare", 0], "latent": ["given", 0], "noise_augmentation": 0.4}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7, "steps": 2,
        "cfg": 1.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["shown", 0],
        "negative": ["shown", 1], "latent_image": ["shown", 2], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  };
  const double error =
      relative_error(run_whole(flow(""), {"out.LATENT"}).floats("out.LATENT", "samples"),
                     expected.floats("sharpened.latent"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kTolerance, "relative error " << error);
  hold(flow, {"layers", "data"}, {"sequence", "tensor"}, 18 << 20, 2 * 8 * 2 * 3 * 4);
}

// What it is shown: a latent of given frames, a mask, the latent that is made sharper, ones.
BOOST_FIXTURE_TEST_CASE(super_resolution_is_shown_given_frames, Hunyuan15Frames) {
  const auto shown = [&](const char* more) {
    return run_whole(
               cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "hunyuanvideo15_vae_fp16.safetensors"}},
      "one": )",
                   text("two", texts),
                   R"(, "start": {"class_type": "test.image", "inputs": {"path": ")",
                   golden.string(), R"(", "name": "1.frames"}},
      "given": {"class_type": "test.latent", "inputs": {"path": ")",
                   golden.string(), R"(", "name": "5.mean"}},
      "node": {"class_type": "HunyuanVideo15SuperResolution", "inputs": {"positive": ["one", 0],
        "negative": ["one", 0], "latent": ["given", 0], "noise_augmentation": 0.7)",
                   more, R"(}},
      "entry": {"class_type": "test.first", "inputs": {"list": ["node", 1]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
               {"entry.value"})
        .floats("entry.value", "concat_latent_image");
  };
  constexpr std::size_t kChannels = 4, kPlane = 2 * 2;  // two frames of two cells
  const std::vector<float> given = expected.floats("5.mean"), plain = shown("");
  BOOST_TEST_REQUIRE(given.size() == kChannels * kPlane);
  BOOST_TEST_REQUIRE(plain.size() == (2 * kChannels + 2) * kPlane);
  std::vector<float> wanted((kChannels + 1) * kPlane, 0.0f);
  wanted.insert(wanted.end(), given.begin(), given.end());
  wanted.insert(wanted.end(), kPlane, 1.0f);
  BOOST_TEST((plain == wanted));
  const std::vector<float> begun = shown(R"(, "vae": ["vae", 0], "start_image": ["start", 0])");
  const std::vector<float> first = expected.floats("1.mean");
  for (std::size_t c = 0; c < kChannels; ++c)
    for (std::size_t cell = 0; cell < 2; ++cell) {
      wanted[c * kPlane + cell] = first[c * 2 + cell];
      if (c == 0) wanted[(kChannels + 1) * kPlane + cell] = 1;
    }
  BOOST_TEST(relative_error(begun, wanted) < kTolerance);
  const std::string refusal = engine_refusal([&] { shown(R"(, "start_image": ["start", 0])"); });
  BOOST_TEST(refusal.find("Link the VAE of HunyuanVideo 1.5") != std::string::npos, refusal);
}

BOOST_FIXTURE_TEST_CASE(given_frames_are_encoded_and_all_others_are_zeros, Hunyuan15Frames) {
  for (const int output : {0, 1}) {
    const std::vector<float> latent = told("1.frames", output, "concat_latent_image");
    BOOST_TEST_REQUIRE(latent.size() == 3u * 4 * 2);
    const double error = relative_error(frames_of(latent, 0, 1), expected.floats("1.mean"));
    BOOST_TEST_MESSAGE("relative error " << error);
    BOOST_TEST(error < kTolerance, "relative error " << error);
    BOOST_TEST(std::ranges::all_of(frames_of(latent, 1, 3), [](float n) { return n == 0; }));
    BOOST_TEST(told("1.frames", output, "concat_mask") == (std::vector<float>{0, 0, 1, 1, 1, 1}));
  }
  const std::vector<float> five = told("5.frames", 0, "concat_latent_image");
  const double error = relative_error(frames_of(five, 0, 2), expected.floats("5.mean"));
  BOOST_TEST(error < kTolerance, "relative error " << error);
  BOOST_TEST(told("5.frames", 0, "concat_mask") == (std::vector<float>{0, 0, 0, 0, 1, 1}));
}

// SigLIP's tower gives no states before its last layer: those behind it are told.
BOOST_FIXTURE_TEST_CASE(what_the_node_tells_is_known_before_a_run, Hunyuan15Frames) {
  add("clip_vision/sigclip_vision_patch14_384", seeded_model("siglip", false, "redux"));
  heddle::EngineOptions options = engine_options();
  options.compute[heddle::test::test_device_kind()] = "f32";
  options.model_dirs = {folder / "models"};
  heddle::Engine::Data told(options);
  std::string one = text("two", texts);
  one.replace(one.find("test.conditioning"), 17, "test.given_conditioning");
  check_inference(
      told,
      cat(R"({"vae": {"class_type": "VAELoader",
        "inputs": {"vae_name": "hunyuanvideo15_vae_fp16.safetensors"}},
      "tower": {"class_type": "CLIPVisionLoader", "inputs": {"clip_name": "sigclip_vision_patch14_384.safetensors"}},
      "picture": {"class_type": "EmptyImage", "inputs": {"width": 48, "height": 32, "batch_size": 1, "color": 8421504}},
      "seen": {"class_type": "CLIPVisionEncode", "inputs": {"clip_vision": ["tower", 0], "image": ["picture", 0], "crop": "center"}},
      "one": )",
          one,
          R"(, "node": {"class_type": "HunyuanVideo15ImageToVideo", "inputs": {"positive": ["one", 0],
        "negative": ["one", 0], "vae": ["vae", 0], "width": 32, "height": 16, "length": 9,
        "batch_size": 1, "start_image": ["picture", 0], "clip_vision_output": ["seen", 0]}},
      "look": {"class_type": "test.look", "inputs": {"value": ["node", 0]}}})"));
}

BOOST_AUTO_TEST_SUITE_END()
