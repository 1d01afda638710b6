// The autoencoders of LTX-Video 0.9.1, 0.9.5 and LTX 2 with weights that follow from their names,
// against what diffusers makes of the same ones (make_ltxv_later_vae_goldens.py).
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kLaterVaeTolerance = 1e-5;
constexpr const char* kLaterVaes[] = {"0.9.1", "0.9.5", "2", "2.3"};

// What the publishers' file of "2.3" tells of its decoder, in the order of an encoder, and what
// diffusers' config does.
constexpr const char* kPublishersConfig =
    R"({"vae": {"causal_decoder": true, "decoder_spatial_padding_mode": "zeros",
    "decoder_blocks": [["res_x", {"num_layers": 1}], ["compress_space", {"multiplier": 2}],
    ["res_x", {"num_layers": 2}], ["compress_time", {"multiplier": 2}],
    ["res_x", {"num_layers": 1}], ["compress_all", {"multiplier": 1}],
    ["res_x", {"num_layers": 1}], ["compress_all", {"multiplier": 2}],
    ["res_x", {"num_layers": 1}]]}})";
constexpr const char* kDiffusersConfig =
    R"({"decoder_causal": true, "decoder_spatial_padding_mode": "zeros",
    "upsample_residual": [false, false, false, false]})";

struct LaterVaeFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltxv_later_vae/expected.safetensors";
  TensorFile expected{golden};

  static std::string quoted(const std::string& json) {
    std::string text;
    for (const char c : json) text += c == '"' ? "\\\"" : c == '\n' ? " " : std::string(1, c);
    return text;
  }
  std::filesystem::path file(const std::string& version, bool by_diffusers = false,
                             const std::string& config = "") const {
    std::vector<FileTensor> tensors = seeded_model(version, by_diffusers, "ltxv_later_vae");
    for (FileTensor& tensor : tensors)
      if (tensor.name.ends_with("std-of-means") || tensor.name == "latents_std")
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
    if (version.starts_with("0.9"))
      tensors.push_back(
          {"decoder.timestep_scale_multiplier", "F32", {}, bytes_of_floats({1000.0f})});
    FileMetadata metadata;
    const std::string told = !config.empty() ? config : version == "2.3" ? kPublishersConfig : "";
    if (!told.empty() && !by_diffusers) metadata.push_back({"config", quoted(told)});
    const std::filesystem::path path = temporary / "vae.safetensors";
    write_safetensors(path, tensors, metadata);
    return path;
  }
  std::vector<float> decoded(const std::string& version, bool by_diffusers = false,
                             const std::string& without = "") {
    const std::string config = by_diffusers && version == "2.3" ? kDiffusersConfig : "";
    return probe
        .call({file(version, by_diffusers), "vae.decoder", config, golden, version + ".", without})
        .floats("model.outputs", "image.0");
  }
  std::vector<float> encoded(const std::string& version, bool by_diffusers = false) {
    return probe.call({file(version, by_diffusers), "vae.encoder", "", golden, "clip."})
        .floats("model.outputs", "mean.0");
  }
  // The frames, rows and columns of a video of 17 frames that the goldens have.
  static std::vector<float> some_of(const std::vector<float>& video) {
    constexpr std::size_t kSide = 64, kColours = 3;
    BOOST_TEST_REQUIRE(video.size() == 17 * kSide * kSide * kColours);
    std::vector<float> some;
    for (const std::size_t frame : {0, 7, 16})
      for (std::size_t y = 0; y < kSide; y += 2)
        for (std::size_t x = 0; x < kSide; x += 2)
          for (std::size_t c = 0; c < kColours; ++c)
            some.push_back(video[((frame * kSide + y) * kSide + x) * kColours + c]);
    return some;
  }
  double decoding_error(const std::string& version, const std::string& without = "") {
    return relative_error(some_of(decoded(version, false, without)),
                          expected.floats(version + ".out"));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(autoencoder_ltxv_later, LaterVaeFixture)

BOOST_DATA_TEST_CASE_F(LaterVaeFixture, decoding_equals_diffusers,
                       boost::unit_test::data::make(kLaterVaes), version) {
  const double error = decoding_error(version);
  BOOST_TEST_MESSAGE(version << ": relative error " << error);
  BOOST_TEST(error < kLaterVaeTolerance, version << ": relative error " << error);
}

BOOST_DATA_TEST_CASE_F(LaterVaeFixture, encoding_equals_diffusers,
                       boost::unit_test::data::make(kLaterVaes), version) {
  const double error =
      relative_error(encoded(version), expected.floats(std::string(version) + ".mean"));
  BOOST_TEST_MESSAGE(version << ": relative error " << error);
  BOOST_TEST(error < kLaterVaeTolerance, version << ": relative error " << error);
}

BOOST_DATA_TEST_CASE_F(LaterVaeFixture, diffusers_names_give_the_same_bytes,
                       boost::unit_test::data::make(kLaterVaes), version) {
  BOOST_TEST((decoded(version) == decoded(version, true)));
  BOOST_TEST((encoded(version) == encoded(version, true)));
}

BOOST_AUTO_TEST_CASE(what_is_drawn_counts) {
  for (const char* input : {"noise", "noise.1", "noise.2", "noise.3"})
    BOOST_TEST(decoding_error("0.9.1", input) > 100 * kLaterVaeTolerance, input);
}

BOOST_AUTO_TEST_CASE(settings_say_what_is_to_be_drawn) {
  const auto planes = [&](const char* version) {
    const heddle::engine::Json settings = heddle::engine::parse_json(
        probe.call({file(version), "vae.decoder", "", golden, std::string(version) + "."})
            .text("model.settings"),
        "settings");
    const heddle::engine::Json* found = settings.find("noise_planes");
    return found == nullptr ? "none" : heddle::engine::write_json(*found);
  };
  BOOST_TEST(planes("0.9.1") == "[0,2,4,2]");
  BOOST_TEST(planes("0.9.5") == "[]");
  BOOST_TEST(planes("2") == "none");
}

BOOST_AUTO_TEST_CASE(a_config_that_does_not_fit_is_refused) {
  const auto says = [&](const char* version, const char* config, const char* words) {
    const std::string text = engine_refusal([&] {
      probe.call(
          {file(version, false, config), "vae.decoder", "", golden, std::string(version) + "."});
    });
    BOOST_TEST(text.find(words) != std::string::npos, "'" << words << "' is not in: " << text);
  };
  says("0.9.5", R"({"vae": {"decode_timestep": 2}})", "decode_timestep");
  says("0.9.5", R"({"vae": {"decode_noise_scale": -1}})", "decode_noise_scale");
  says("0.9.5", R"({"vae")", "metadata 'config'");
}

BOOST_AUTO_TEST_SUITE_END()
