// The autoencoder of LTX-Video 0.9.0 with weights that follow from their names, against what
// diffusers makes of the same ones (make_ltxv_vae_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kLtxvVaeTolerance = 1e-5;
constexpr const char* kStd = "per_channel_statistics.std-of-means";

struct LtxvVaeFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltxv_vae/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(bool by_diffusers, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("vae", by_diffusers, "ltxv_vae");
    for (FileTensor& tensor : tensors)
      if (tensor.name == kStd || tensor.name == "latents_std")
        tensor = seeded_tensor(tensor.name, tensor.shape, "std.norm.weight");
    change(tensors);
    const std::filesystem::path path = temporary / "vae.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(bool by_diffusers = false) const {
    return file(by_diffusers, [](std::vector<FileTensor>&) {});
  }
  std::vector<float> made(const std::filesystem::path& model, const std::string& side,
                          const std::string& prefix) {
    return probe.call({model, "vae." + side, "", golden, prefix + "."})
        .floats("model.outputs", side == "decoder" ? "image.0" : "mean.0");
  }
  static void compare(const std::vector<float>& got, const std::vector<float>& wanted,
                      const char* what) {
    const double error = relative_error(got, wanted);
    BOOST_TEST_MESSAGE(what << ": relative error " << error);
    BOOST_TEST(error < kLtxvVaeTolerance, what << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(autoencoder_ltxv, LtxvVaeFixture)

BOOST_AUTO_TEST_CASE(decoding_equals_diffusers) {
  const std::filesystem::path model = file();
  compare(made(model, "decoder", "pictures"), expected.floats("pictures.out"), "two pictures");
  const std::vector<float> video = made(model, "decoder", "video");
  constexpr std::ptrdiff_t kFrame = 32 * 64 * 3;
  BOOST_TEST_REQUIRE(video.size() == 17u * kFrame);
  std::vector<float> some;
  for (const std::ptrdiff_t frame : {0, 7, 16})
    some.insert(some.end(), video.begin() + frame * kFrame, video.begin() + (frame + 1) * kFrame);
  compare(some, expected.floats("video.out"), "a video");
}

BOOST_AUTO_TEST_CASE(encoding_equals_diffusers) {
  const std::filesystem::path model = file();
  compare(made(model, "encoder", "still"), expected.floats("still.mean"), "a picture");
  compare(made(model, "encoder", "clip"), expected.floats("clip.mean"), "a video");
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto both = [&](bool by_diffusers, auto&& change) {
    const std::filesystem::path model = file(by_diffusers, change);
    return std::pair(made(model, "decoder", "video"), made(model, "encoder", "clip"));
  };
  const auto as_it_is = [](std::vector<FileTensor>&) {};
  const auto original = both(false, as_it_is), diffusers = both(true, as_it_is),
             prefixed = both(false, [](std::vector<FileTensor>&tensors) {
               for (FileTensor& tensor : tensors) tensor.name = "vae." + tensor.name;
             });
  BOOST_TEST((original == diffusers));
  BOOST_TEST((original == prefixed));
}

BOOST_AUTO_TEST_CASE(settings_say_how_large_a_cell_is) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      probe.call({file(), "vae.decoder", "", golden, "pictures."}).text("model.settings"),
      "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("downscale") == "32");
  BOOST_TEST(written("frame_downscale") == "8");
  BOOST_TEST(written("latent_channels") == "8");
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_said) {
  const auto says = [&](auto&& change, const std::string& side,
                        std::initializer_list<const char*> words) {
    const std::string text = engine_refusal(
        [&] { made(file(false, change), side, side == "decoder" ? "video" : "clip"); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto without = [](const std::string& name) {
    return [name](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    };
  };
  const auto with = [](const std::string& name) {
    return
        [name](std::vector<FileTensor>& tensors) { tensors.push_back(seeded_tensor(name, {1})); };
  };
  says(without("decoder.up_blocks.4.conv2.conv.bias"), "decoder",
       {"'decoder.up_blocks.4.conv2.conv.bias'", "missing"});
  says(without("encoder.down_blocks.2.conv_shortcut.weight"), "encoder",
       {"'encoder.down_blocks.2.conv_shortcut.weight'"});
  // A decoder that reads a noise level is told what a residual block makes of it, and the end, too.
  says(with("decoder.last_scale_shift_table"), "decoder",
       {"decoder.last_time_embedder.timestep_embedder.linear_1.weight"});
}

BOOST_AUTO_TEST_SUITE_END()
