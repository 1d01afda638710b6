// The workflows of graphs/ that begin with a picture, have two stages or go through the autoencoder
// by tiles, against what PyTorch makes of them (plugins/goldens/make_pipeline_goldens.py).
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kLeastPipelineDecibels = 75;
constexpr int kGoldenStep = 4;  // the golden pictures keep every 4th row and column

struct PipelineFixture {
  TensorFile golden{tests_folder() / "plugins/goldens/pipelines/pipelines.safetensors"};
  TemporaryFolder output;
  heddle::Engine engine{options()};

  static std::filesystem::path graphs() {
    return std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs";
  }
  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute = {{"cpu", "f32"}};
    options.model_dirs = {graphs() / "models"};
    options.input_dir = graphs();
    options.output_dir = output.path();
    return options;
  }

  static std::vector<float> kept(const heddle::Image& picture) {
    std::vector<float> kept;
    const auto width = std::size_t(picture.width), channels = std::size_t(picture.channels);
    for (std::size_t y = 0; y < std::size_t(picture.height); y += kGoldenStep)
      for (std::size_t x = 0; x < width; x += kGoldenStep)
        for (std::size_t c = 0; c < channels; ++c)
          kept.push_back(picture.pixels[(y * width + x) * channels + c]);
    return kept;
  }
  // Of pictures from 0 to 1.
  static double likeness(const std::vector<float>& a, const std::vector<float>& b) {
    BOOST_TEST_REQUIRE(a.size() == b.size());
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      squares += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    return -10 * std::log10(squares / double(a.size()));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pipelines, PipelineFixture)

BOOST_DATA_TEST_CASE(pictures_equal_pytorch,
                     (std::vector<std::string>{"image_to_image", "inpainting", "outpainting",
                                               "area_composition", "two_stages", "tiled_decode"}),
                     name) {
  const heddle::Workflow flow = engine.load(graphs() / (name + ".json"));
  const std::string output = name == "image_to_image" ? "decode.IMAGE" : "picture.IMAGE";
  const heddle::Results results = engine.start(flow, {{}, {output}}).wait();
  const double decibels = likeness(kept(results.image(output)), golden.floats(name));
  BOOST_TEST_MESSAGE(name << ": " << decibels << " dB");
  BOOST_TEST(decibels > kLeastPipelineDecibels, name << ": " << decibels << " dB");
}

BOOST_AUTO_TEST_CASE(tiles_through_the_encoder_and_masks_for_inpainting_equal_pytorch) {
  const heddle::Workflow flow = engine.parse(R"({
    "model": {"class_type": "DiffusersLoader", "inputs": {"model_path": "tiny-scenes"}},
    "scene": {"class_type": "LoadImage", "inputs": {"image": "scene.png"}},
    "tiled": {"class_type": "VAEEncodeTiled", "inputs": {"pixels": ["scene", 0], "vae": ["model", 2], "tile_size": 128,
      "overlap": 32, "temporal_size": 64, "temporal_overlap": 8}},
    "part": {"class_type": "ImageCrop", "inputs": {"image": ["scene", 0], "width": 144, "height": 256, "x": 0, "y": 0}},
    "pad": {"class_type": "ImagePadForOutpaint", "inputs": {"image": ["part", 0], "left": 0, "top": 0, "right": 112,
      "bottom": 0, "feathering": 24}},
    "blank": {"class_type": "VAEEncodeForInpaint", "inputs": {"pixels": ["pad", 0], "vae": ["model", 2], "mask": ["pad", 1],
      "grow_mask_by": 8}},
    "look": {"class_type": "test.look", "inputs": {"value": ["tiled", 0]}},
    "see": {"class_type": "test.look", "inputs": {"value": ["blank", 0]}}})");
  const heddle::Results results = engine.start(flow, {{}, {"tiled.LATENT", "blank.LATENT"}}).wait();
  const double error =
      relative_error(results.floats("tiled.LATENT", "samples"), golden.floats("latents.tiled"));
  BOOST_TEST_MESSAGE("tiles of the encoder: relative error " << error);
  BOOST_TEST(error < 1e-4, "relative error " << error);
  BOOST_TEST(results.shape("blank.LATENT", "noise_mask") ==
             (std::vector<std::int64_t>{1, 1, 256, 256}));
  BOOST_TEST((results.floats("blank.LATENT", "noise_mask") == golden.floats("latents.mask")));
}

BOOST_AUTO_TEST_SUITE_END()
