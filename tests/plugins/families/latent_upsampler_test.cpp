// Models that make latents of LTX-Video larger, and those of HunyuanVideo 1.5 sharper, with weights
// that follow from their names, against what diffusers makes of the same ones
// (make_latent_upsampler_goldens.py), and PyTorch (make_hunyuan15_upsampler_goldens.py).
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kUpsamplerTolerance = 1e-5;

struct LatentUpsamplerFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/latent_upsamplers/expected.safetensors";
  TensorFile expected{golden};

  // By the published files' metadata the rational one is told its scale.
  std::vector<float> made(const std::string& model, const char* scale = "1.5") {
    const std::filesystem::path path = temporary / "upsampler.safetensors";
    FileMetadata metadata;
    if (model == "rational")
      metadata.push_back({"config", std::string(R"({\"rational_spatial_scale\": )") + scale + "}"});
    write_safetensors(path, seeded_model(model, false, "latent_upsamplers"), metadata);
    return probe.call({path, "latent_upscaler", "", golden, model + "."})
        .floats("model.outputs", "larger.0");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(latent_upsampler, LatentUpsamplerFixture)

constexpr const char* kUpsamplers[] = {"plain", "rational", "frames"};
BOOST_DATA_TEST_CASE_F(LatentUpsamplerFixture, a_larger_latent_equals_diffusers,
                       boost::unit_test::data::make(kUpsamplers), model) {
  const double error = relative_error(made(model), expected.floats(std::string(model) + ".larger"));
  BOOST_TEST_MESSAGE(model << ": relative error " << error);
  BOOST_TEST(error < kUpsamplerTolerance, model << ": relative error " << error);
}

BOOST_AUTO_TEST_CASE(a_sharper_latent_of_hunyuan_video_equals_pytorch) {
  const std::filesystem::path numbers =
      tests_folder() / "plugins/goldens/hunyuan15_upsamplers/expected.safetensors";
  for (const std::string model : {"to_720", "to_1080"}) {
    const std::filesystem::path path = temporary / "upsampler.safetensors";
    write_safetensors(path, seeded_model(model, false, "hunyuan15_upsamplers"));
    const double error =
        relative_error(probe.call({path, "latent_upscaler", "", numbers, model + "."})
                           .floats("model.outputs", "larger.0"),
                       TensorFile{numbers}.floats(model + ".larger"));
    BOOST_TEST_MESSAGE(model << ": relative error " << error);
    BOOST_TEST(error < kUpsamplerTolerance, model << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(a_scale_that_does_not_fit_is_refused) {
  const std::string text = engine_refusal([&] { made("rational", "1.7"); });
  BOOST_TEST(text.find("rational_spatial_scale is 1.7") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
