// VAEDecode over a tiny autoencoder of LTX-Video 0.9.1, which is told a noise level and draws
// (../goldens/make_ltxv_later_vae_goldens.py), and LTXVLatentUpsampler beside it
// (../goldens/make_latent_upsampler_goldens.py).
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct LtxvVideoVae : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltxv_later_vae/expected.safetensors";
  TensorFile expected{golden};

  LtxvVideoVae() {
    std::vector<FileTensor> tensors = seeded_model("0.9.1", false, "ltxv_later_vae");
    for (FileTensor& tensor : tensors) {
      if (tensor.name.ends_with("std-of-means"))
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
      tensor.name = "vae." + tensor.name;
    }
    tensors.push_back(
        {"vae.decoder.timestep_scale_multiplier", "F32", {}, bytes_of_floats({1000.0f})});
    add("vae/told", tensors);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltxv_video_vae, LtxvVideoVae)

// Twice the same noise, that of the goldens.
BOOST_AUTO_TEST_CASE(decoding_draws_the_same_noise_in_each_run) {
  const std::string flow = cat(
      R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "told.safetensors"}},
      "in": {"class_type": "test.latent", "inputs": {"name": "0.9.1.z", "path": ")",
      golden.string(),
      R"("}}, "out": {"class_type": "VAEDecode", "inputs": {"samples": ["in", 0], "vae": ["vae", 0]}}, )",
      kLook, "}");
  const std::vector<float> video = run_whole(flow, {"out.IMAGE"}).floats("out.IMAGE");
  constexpr std::size_t kSide = 64, kColours = 3;
  BOOST_TEST_REQUIRE(video.size() == 17 * kSide * kSide * kColours);
  std::vector<float> some;
  for (const std::size_t frame : {0, 7, 16})
    for (std::size_t y = 0; y < kSide; y += 2)
      for (std::size_t x = 0; x < kSide; x += 2)
        for (std::size_t c = 0; c < kColours; ++c)
          some.push_back(video[((frame * kSide + y) * kSide + x) * kColours + c]);
  const double error = relative_error(some, expected.floats("0.9.1.drawn"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < 1e-5, "relative error " << error);
}

// Of 4 x 4 cells and two frames of the latent.
BOOST_AUTO_TEST_CASE(tiles_of_a_video_are_put_together_as_in_comfyui) {
  std::vector<FileTensor> tensors = seeded_model("2", false, "ltxv_later_vae");
  for (FileTensor& tensor : tensors)
    if (tensor.name.ends_with("std-of-means"))
      tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
  add("vae/two", tensors);
  const auto decoded = [&](const char* type, const char* more) {
    return run_whole(
               cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "two.safetensors"}},
      "in": {"class_type": "test.latent", "inputs": {"name": "tiled.z", "path": ")",
                   golden.string(), R"("}}, "out": {"class_type": ")", type,
                   R"(", "inputs": {"samples": ["in", 0], "vae": ["vae", 0])", more, "}}, ", kLook,
                   "}"),
               {"out.IMAGE"})
        .floats("out.IMAGE");
  };
  constexpr std::size_t kRows = 192, kColumns = 128, kColours = 3;
  const auto some_of = [](const std::vector<float>& video) {
    BOOST_TEST_REQUIRE(video.size() == 17 * kRows * kColumns * kColours);
    std::vector<float> some;
    for (std::size_t frame = 0; frame < 17; frame += 4)
      for (std::size_t y = 0; y < kRows; y += 8)
        for (std::size_t x = 0; x < kColumns; x += 8)
          for (std::size_t c = 0; c < kColours; ++c)
            some.push_back(video[((frame * kRows + y) * kColumns + x) * kColours + c]);
    return some;
  };
  const std::vector<float>
      whole = some_of(decoded("VAEDecode", "")),
      tiled = some_of(decoded(
          "VAEDecodeTiled",
          R"(, "tile_size": 128, "overlap": 32, "temporal_size": 16, "temporal_overlap": 8)"));
  const double error = relative_error(tiled, expected.floats("tiled.out"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < 1e-5, "relative error " << error);
  BOOST_TEST(relative_error(whole, tiled) > 1e-4);
}

BOOST_AUTO_TEST_CASE(a_larger_latent_keeps_the_units) {
  add("latent_upscale_models/plain", seeded_model("plain", false, "latent_upsamplers"));
  const std::filesystem::path file =
      tests_folder() / "plugins/goldens/latent_upsamplers/expected.safetensors";
  const std::string flow = cat(
      R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "told.safetensors"}},
      "model": {"class_type": "LatentUpscaleModelLoader", "inputs": {"model_name": "plain.safetensors"}},
      "in": {"class_type": "test.latent", "inputs": {"name": "node.samples", "path": ")",
      file.string(),
      R"("}}, "out": {"class_type": "LTXVLatentUpsampler", "inputs": {"samples": ["in", 0], "upscale_model": ["model", 0], "vae": ["vae", 0]}}, )",
      kLook, "}");
  const double error =
      relative_error(run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples"),
                     TensorFile{file}.floats("node.larger"));
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < 1e-5, "relative error " << error);
}

// Of two videos, each by itself; the latent of a sampler is in other units.
BOOST_AUTO_TEST_CASE(a_resized_latent_of_hunyuan_video_is_made_sharper) {
  add("latent_upscale_models/sharper", seeded_model("to_1080", false, "hunyuan15_upsamplers"));
  add("latent_upscale_models/plain", seeded_model("plain", false, "latent_upsamplers"));
  const std::filesystem::path file =
      tests_folder() / "plugins/goldens/hunyuan15_upsamplers/expected.safetensors";
  const auto flow = [&](const char* model, const char* width, const char* height) {
    return cat(
        R"({"model": {"class_type": "LatentUpscaleModelLoader", "inputs": {"model_name": ")", model,
        R"(.safetensors"}}, "in": {"class_type": "test.latent", "inputs": {"name": "node.samples", "path": ")",
        file.string(),
        R"("}}, "out": {"class_type": "HunyuanVideo15LatentUpscaleWithModel", "inputs": {
          "model": ["model", 0], "samples": ["in", 0], "upscale_method": "bilinear", "crop": "center", "width": )",
        width, R"(, "height": )", height, "}}, ", kLook, "}");
  };
  const auto drawn = [&](const char* width, const char* height) {
    return run_whole(flow("sharper", width, height), {"out.LATENT"})
        .floats("out.LATENT", "samples");
  };
  const std::vector<float> wanted = TensorFile{file}.floats("node.larger");
  const double error = relative_error(drawn("160", "96"), wanted);
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < 1e-5, "relative error " << error);
  // A side that follows from the other, at least 64; both 0 change nothing.
  BOOST_TEST(drawn("0", "80").size() == std::size_t(2 * 16 * 3 * 5 * 6));
  BOOST_TEST((drawn("0", "0") == TensorFile{file}.floats("node.samples")));
  const std::string refusal =
      engine_refusal([&] { run_whole(flow("plain", "160", "96"), {"out.LATENT"}); });
  BOOST_TEST(refusal.find("LTXVLatentUpsampler") != std::string::npos, refusal);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
