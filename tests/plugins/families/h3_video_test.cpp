// MiniMax H3's video autoencoder with weights that follow from their names, clip by clip, against
// what diffusers makes of the same ones (make_h3_vae_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/h3_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// Some twenty filters or matrices in f32.
constexpr double kH3VideoTolerance = 1e-5;

struct H3VideoFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/h3_vae/expected.safetensors";
  TensorFile expected{golden};

  std::filesystem::path file(bool by_diffusers) const {
    const std::filesystem::path path = temporary / "h3.safetensors";
    write_safetensors(path, h3_video_tensors(by_diffusers));
    return path;
  }
  std::vector<float> made(bool by_diffusers, bool decodes, const char* prefix,
                          const char* config = "") {
    return probe
        .call({file(by_diffusers), decodes ? "vae.decoder" : "vae.encoder", config, golden, prefix})
        .floats("model.outputs", decodes ? "image.0" : "mean.0");
  }
  void compare(const std::vector<float>& got, const char* wanted) const {
    const double error = relative_error(got, expected.floats(wanted));
    BOOST_TEST_MESSAGE(wanted << ": relative error " << error << ", " << -20 * std::log10(error)
                              << " dB");
    BOOST_TEST(error < kH3VideoTolerance, wanted << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(h3_video, H3VideoFixture)

BOOST_AUTO_TEST_CASE(decoding_equals_diffusers_under_both_names) {
  for (const bool by_diffusers : {false, true}) {
    compare(made(by_diffusers, true, "clip."), "clip.out");
    compare(made(by_diffusers, true, "pictures."), "pictures.out");
  }
}

BOOST_AUTO_TEST_CASE(encoding_equals_diffusers_under_both_names) {
  for (const bool by_diffusers : {false, true}) {
    compare(made(by_diffusers, false, "short."), "short.mean");
    compare(made(by_diffusers, false, "still."), "still.mean");
  }
}

// As ComfyUI's file has them: the layers' matrices in int8, turned.
BOOST_AUTO_TEST_CASE(matrices_in_int8_are_read) {
  const TensorFile stored(tests_folder() / "plugins/goldens/h3_vae/int8.safetensors");
  std::vector<FileTensor> tensors;
  for (const FileTensor& tensor : h3_video_tensors(false))
    if (!stored.has(tensor.name)) tensors.push_back(tensor);
  for (const auto& [name, entry] : stored.entries())
    tensors.push_back({name, entry.dtype, entry.shape, entry.bytes});
  const std::filesystem::path path = temporary / "int8.safetensors";
  write_safetensors(path, tensors);
  compare(probe.call({path, "vae.decoder", "", golden, "clip."}).floats("model.outputs", "image.0"),
          "clip.int8");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto says = [&](const char* config, const char* words) {
    const std::string text = engine_refusal([&] { made(false, true, "clip.", config); });
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  says(R"({"decoder_attention_head_dim": 48})", "heads of 48");
  says(R"({"decoder_attention_head_dim": 62})", "decoder_attention_head_dim 62");
  says(R"({"temporal_downsample_factors": [1, 2, 2, 2, 1, 1]})", "8 frames long");
  says(R"({"latents_mean": [1, 2]})", "24 channels, there are 2");
  says(R"({"clip_length": 9})", "clip_length 9");
}

BOOST_AUTO_TEST_SUITE_END()
