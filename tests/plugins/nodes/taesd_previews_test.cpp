// Previews by the small decoder of a family's latents: what VAEDecode makes of the same file.
#include <algorithm>

#include "tests/plugins/nodes/unet_patch_fixture.h"
#include "tests/support/pytorch_writer.h"

using namespace heddle::test;

namespace {

struct TaesdPreviews : PatchedUnet {
  struct Shown {
    unsigned width = 0, height = 0;
    std::vector<std::uint8_t> pixels;
  };
  std::vector<Shown> shown;
  std::vector<float> latent;

  // Of so many latent channels; the goldens' have 16.
  static std::vector<FileTensor> side(const char* name, std::int64_t channels) {
    std::vector<FileTensor> tensors = seeded_model(name, false, "taesd");
    for (FileTensor& tensor : tensors) {
      std::vector<std::int64_t> shape = tensor.shape;
      std::ranges::replace(shape, 16, channels);
      tensor = seeded_tensor(tensor.name, shape);
    }
    return tensors;
  }
  heddle::Results drawn(heddle::PreviewMethod method, const std::string& more = "") {
    shown.clear();
    warnings.clear();
    heddle::StartOptions start;
    start.fetch = {"drawn.LATENT"};
    if (!more.empty()) start.fetch.push_back("picture.IMAGE");
    start.previews = method;
    start.observer = [&](const heddle::Event& event) {
      if (event.kind == heddle::Event::Kind::warning) warnings.emplace_back(event.text);
      if (event.kind != heddle::Event::Kind::preview) return;
      const heddle::Preview& p = *event.preview;
      shown.push_back({p.width, p.height, {p.pixels, p.pixels + 3 * p.width * p.height}});
    };
    // Drawn anew each time.
    start.anew = true;
    const std::string model =
        node("model", "UNETLoader", R"("unet_name": "sd1.safetensors", "weight_dtype": "default")");
    heddle::Results results =
        engine.start(engine.parse(flow("sd1", model + more)), std::move(start)).wait();
    latent = results.floats("drawn.LATENT", "samples");
    return results;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(taesd_previews, TaesdPreviews)

BOOST_AUTO_TEST_CASE(the_last_step_is_shown_as_vae_decode_makes_it) {
  std::filesystem::create_directories(folder / "models/vae_approx");
  write_pytorch(folder / "models/vae_approx/taesd_decoder.pth", side("decoder", 4), "params");
  // VAELoader offers both sides alone.
  write_file("vae_approx/taesd_encoder", side("encoder", 4));
  const heddle::Results results =
      drawn(heddle::PreviewMethod::taesd,
            node("small", "VAELoader", R"("vae_name": "taesd")") +
                node("picture", "VAEDecode", R"("samples": ["drawn", 0], "vae": ["small", 0])") +
                node("kept", "test.look", R"("value": ["picture", 0])"));
  for (const std::string& warning : warnings) BOOST_TEST(warning == "");
  const std::vector<float> picture = results.floats("picture.IMAGE");
  BOOST_TEST_REQUIRE(shown.size() == 2u);
  BOOST_TEST(shown[0].pixels.size() == picture.size());
  BOOST_TEST((shown[0].pixels != shown[1].pixels));
  BOOST_TEST_REQUIRE(shown[1].pixels.size() == picture.size());
  BOOST_TEST(shown[1].width == 2 * shown[1].height);
  bool has_light = false, has_dark = false;
  for (std::size_t i = 0; i < picture.size(); ++i) {
    BOOST_TEST_REQUIRE(std::abs(255 * picture[i] - float(shown[1].pixels[i])) <= 0.52f);
    has_light = has_light || picture[i] > 0.6f;
    has_dark = has_dark || picture[i] < 0.4f;
  }
  BOOST_TEST((has_light && has_dark));
  const std::vector<float> with_previews = latent;
  drawn(heddle::PreviewMethod::none);
  BOOST_TEST(shown.empty());
  BOOST_TEST((latent == with_previews));
}

BOOST_AUTO_TEST_CASE(without_a_decoder_that_fits_the_map_is_shown_and_why_is_told) {
  const auto maps = [&](const char* why) {
    drawn(heddle::PreviewMethod::taesd);
    BOOST_TEST_REQUIRE(warnings.size() == 1u);
    BOOST_TEST(warnings[0].find(why) != std::string::npos, warnings[0]);
    BOOST_TEST_REQUIRE(shown.size() == 2u);
    BOOST_TEST(shown[0].width == 16u);
    BOOST_TEST(shown[0].height == 8u);
  };
  maps("there is no 'taesd_decoder.safetensors'");
  write_file("vae_approx/taesd_decoder", side("decoder", 16));
  maps("decodes latents of 16 channels, and the model's have 4");
  write_file("vae_approx/taesd_decoder", {seeded_tensor("1.weight", {8, 4, 3, 3})});
  maps("taesd_decoder.safetensors");
  std::ofstream(folder / "models/vae_approx/taesd_decoder.safetensors") << "no model";
  maps("taesd_decoder.safetensors");
  drawn(heddle::PreviewMethod::linear);
  BOOST_TEST(warnings.empty());
  BOOST_TEST(shown.size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
