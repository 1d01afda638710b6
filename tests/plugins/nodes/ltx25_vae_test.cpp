// VAEDecode over a tiny decoder of LTX 2.5, which makes pixels of noise that is drawn for it
// (../goldens/make_ltx25_vae_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

namespace heddle::test {
namespace {

using engine::cat;

struct Ltx25VaeNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltx25_vae/expected.safetensors";
  TensorFile expected{golden};

  Ltx25VaeNodes() { write(seeded_model("decoder", false, "ltx25_vae")); }

  void write(const std::vector<FileTensor>& tensors) const {
    const std::string told =
        R"({\"vae\": {\"decoder\": {\"upsamples\": [[[1, 2, 2], 2], [[2, 2, 2], 1]],)"
        R"( \"stage_kernels\": [[3, 3, 3], [3, 5, 5]], \"stage5_kernel\": [3, 5, 5]}}})";
    std::filesystem::create_directories(folder / "models/vae");
    write_safetensors(folder / "models/vae/ltx25.safetensors", tensors,
                      FileMetadata{{"config", told}});
  }
  std::string flow(const std::string& clip, const char* type = "VAEDecode",
                   const char* more = "") const {
    return cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ltx25.safetensors"}},
      "in": {"class_type": "test.latent", "inputs": {"name": ")",
               clip, R"(.z", "path": ")", golden.string(), R"("}}, "out": {"class_type": ")", type,
               R"(", "inputs": {"samples": ["in", 0], "vae": ["vae", 0])", more, "}}, ", kLook,
               "}");
  }
  // As an IMAGE is.
  std::vector<float> wanted(const std::string& clip) const {
    std::vector<float> pixels = expected.floats(clip + ".image");
    for (float& pixel : pixels) pixel = std::clamp(pixel * 0.5f + 0.5f, 0.0f, 1.0f);
    return pixels;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx25_vae_nodes, Ltx25VaeNodes)

BOOST_AUTO_TEST_CASE(frames_are_drawn_of_the_same_noise_in_each_run) {
  for (const char* clip : {"video", "pair"}) {
    const double error =
        relative_error(run_whole(flow(clip), {"out.IMAGE"}).floats("out.IMAGE"), wanted(clip));
    BOOST_TEST(error < 1e-4, clip << ": relative error " << error);
  }
}

// It draws as much noise.
BOOST_AUTO_TEST_CASE(a_tile_that_covers_a_video_makes_the_same) {
  const std::string tiled = flow("video", "VAEDecodeTiled",
                                 R"(, "tile_size": 64, "overlap": 0,
      "temporal_size": 8, "temporal_overlap": 4)");
  const double error = relative_error(run_whole(tiled, {"out.IMAGE"}).floats("out.IMAGE"),
                                      run_whole(flow("video"), {"out.IMAGE"}).floats("out.IMAGE"));
  BOOST_TEST(error < 1e-6, "relative error " << error);
}

// Of latents of 128 channels, as the node for empty ones makes them.
BOOST_AUTO_TEST_CASE(calls_are_told_before_a_run) {
  std::vector<FileTensor> tensors = seeded_model("decoder", false, "ltx25_vae");
  for (FileTensor& tensor : tensors) {
    if (tensor.name == "decoder.conv_in.weight") tensor = seeded_tensor(tensor.name, {32, 128});
    if (tensor.name.starts_with("per_channel")) tensor = seeded_tensor(tensor.name, {128});
  }
  write(tensors);
  Engine::Data fresh(options_for({"cpu:0"}));
  for (const char* type : {"VAEDecode", "VAEDecodeTiled"}) {
    const bool is_tiled = std::string(type) == "VAEDecodeTiled";
    check_inference(
        fresh,
        cat(R"({"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ltx25.safetensors"}},
      "in": {"class_type": "EmptyLTXVLatentVideo", "inputs": {"width": 96, "height": 160, "length": 17, "batch_size": 1}},
      "out": {"class_type": ")",
            type, R"(", "inputs": {"samples": ["in", 0], "vae": ["vae", 0])",
            is_tiled
                ? R"(, "tile_size": 64, "overlap": 0, "temporal_size": 8, "temporal_overlap": 4)"
                : "",
            "}}, ", kLook, "}"));
  }
}

BOOST_AUTO_TEST_CASE(the_same_bytes_are_made_on_another_device) {
  const auto made = [&](EngineOptions options) {
    Engine engine(std::move(options));
    return engine.start(engine.parse(flow("video")), {{}, {"out.IMAGE"}})
        .wait()
        .floats("out.IMAGE");
  };
  BOOST_TEST(are_equal(made(options_for({"cpu:0"})), made(options_for({"fake:0"}))));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
