// Models of FLUX.1 and Qwen-Image that read pictures, divided over devices in every way: the bytes
// of one device, or, where the order of sums changes, nearly its numbers.
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

struct PlacedPictures : NodeFixture {
  const heddle::test::FakeControl control;

  static std::string conditioning_of(const std::filesystem::path& file, const std::string& name) {
    return cat(R"({"class_type": "test.conditioning", "inputs": {"path": ")", file.string(),
               R"(", "prefix": "in.)", name, R"(", "option": ""}})");
  }
  static std::string shown(const std::string& file, const std::string& name) {
    return conditioning_of(here() / (file + ".safetensors"), name);
  }
  static std::string qwen_text(const std::string& name) {
    return conditioning_of(
        heddle::test::tests_folder() / "plugins/goldens/qwen_image/expected.safetensors", name);
  }
  // The conditioning "one" with a picture, as "with".
  static std::string with_picture() {
    return cat(R"("picture": {"class_type": "test.latent", "inputs": {"path": ")",
               (here() / "reference_goldens.safetensors").string(), R"(", "name": "in.first"}},
      "with": {"class_type": "ReferenceLatent", "inputs": {"conditioning": ["one", 0], "latent": ["picture", 0]}})");
  }
  // Two items, guided, which `more` shows to the sampler as "shown", and without as "two".
  static std::string flow(const std::string& model, const std::string& more,
                          const std::string& hints) {
    return cat(R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", model,
               R"(.safetensors", "weight_dtype": "default"}}, )", more, R"(,
      "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 1, "steps": 2,
        "cfg": 2.0, "sampler_name": "euler", "scheduler": "simple", "positive": ["shown", 0],
        "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0})",
               hints,
               R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  EngineOptions options_for(std::vector<std::string> devices) const {
    EngineOptions options = heddle::test::engine_options();
    options.plugin_dirs.push_back(heddle::test::kFakePlugin);
    options.devices = std::move(devices);
    options.compute = {{"fake", "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  std::vector<float> draw(std::vector<std::string> devices, const std::string& text) const {
    Engine placed(options_for(std::move(devices)));
    return placed.start(placed.parse(text), {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  }
  void check(const std::string& model, const std::string& more) const {
    const std::vector<float> alone = draw({"fake:0"}, flow(model, more, ""));
    const auto divided = [&](const char* mode) {
      return draw(
          {"fake:0", "fake:1"},
          flow(model, more, cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")")));
    };
    for (const char* mode : {"layers", "data", "cfg"}) {
      const std::vector<float> made = divided(mode);
      BOOST_TEST((made.size() == alone.size() &&
                  std::memcmp(made.data(), alone.data(), 4 * alone.size()) == 0),
                 mode);
    }
    for (const char* mode : {"sequence", "tensor"})
      BOOST_TEST(heddle::test::relative_error(divided(mode), alone) < kTolerance, mode);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(placed_pictures, PlacedPictures)

BOOST_AUTO_TEST_CASE(a_picture_beside_the_point) {
  write_wider_model("fill");
  check("fill", cat("\"two\": ", shown("goldens", "two"),
                    ", \"shown\": ", shown("concat_goldens", "masked")));
}

BOOST_AUTO_TEST_CASE(reference_pictures) {
  check("plain", cat("\"two\": ", shown("goldens", "two"), ", \"one\": ", shown("goldens", "one"),
                     ", ", with_picture(), R"(, "shown": {"class_type": "ReferenceLatent",
                     "inputs": {"conditioning": ["with", 0]}})"));
}

BOOST_AUTO_TEST_CASE(reference_pictures_with_a_timestep_of_their_own,
                     *boost::unit_test::label("long")) {
  std::filesystem::create_symlink(heddle::test::tests_folder() /
                                      "plugins/goldens/qwen_image/transformer/"
                                      "diffusion_pytorch_model.safetensors",
                                  folder / "models/unet/qwen.safetensors");
  for (const char* method : {"index", "index_timestep_zero"})
    check("qwen", cat("\"two\": ", qwen_text("short"), ", \"one\": ", qwen_text("long"), ", ",
                      with_picture(), R"(, "shown": {"class_type":
                      "FluxKontextMultiReferenceLatentMethod", "inputs": {"conditioning": ["with", 0],
                      "reference_latents_method": ")",
                      method, "\"}}"));
}

BOOST_AUTO_TEST_SUITE_END()
