// The decoder of videos of LTX 2.5 with weights that follow from their names, whole and through the
// engine, against what diffusers makes of the same ones (make_ltx25_vae_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

struct Ltx25VaeFixture {
  static constexpr double kLeast = 1e-4;
  static constexpr const char* kTold =
      R"({"vae": {"_class_name": "CausalDiffusionVAE", "model_output_type": "x0", "decoder": {
      "upsamples": [[[1, 2, 2], 2], [[2, 2, 2], 1]], "stage_kernels": [[3, 3, 3], [3, 5, 5]],
      "stage5_kernel": [3, 5, 5], "default_num_inference_steps": 1}}})";

  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/ltx25_vae/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change, const std::string& told = kTold) const {
    std::vector<FileTensor> tensors = seeded_model("decoder", false, "ltx25_vae");
    change(tensors);
    std::string escaped;
    for (const char c : told)
      if (c != '\n') escaped += c == '"' ? "\\\"" : std::string(1, c);
    const std::filesystem::path path = temporary / "ltx25_vae.safetensors";
    write_safetensors(path, tensors, FileMetadata{{"config", escaped}});
    return path;
  }
  heddle::Results decode(const std::filesystem::path& path, const std::string& clip) {
    return probe.call({path, "vae.decoder", "", golden, (clip + ".").c_str()});
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

constexpr auto as_it_is = [](std::vector<FileTensor>&) {};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ltx25_vae, Ltx25VaeFixture)

// Of "video" the layers of pixels take queries in two squares.
BOOST_AUTO_TEST_CASE(frames_equal_those_of_diffusers) {
  for (const std::string clip : {"video", "pair"}) {
    const double error =
        relative_error(decode(file(as_it_is), clip).floats("model.outputs", "image.0"),
                       expected.floats(clip + ".image"));
    BOOST_TEST_MESSAGE(clip << ": relative error " << error);
    BOOST_TEST(error < kLeast, clip << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(a_prefix_gives_the_same_bytes) {
  const auto prefixed = file([](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) tensor.name = "vae." + tensor.name;
  });
  const std::vector<float> one = decode(prefixed, "video").floats("model.outputs", "image.0");
  BOOST_TEST((one == decode(file(as_it_is), "video").floats("model.outputs", "image.0")));
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_decoder_need) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      decode(file(as_it_is), "video").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("latent_channels") == "8");
  BOOST_TEST(written("downscale") == "8");
  BOOST_TEST(written("frame_downscale") == "2");
  BOOST_TEST(written("cell_noise") == "[2,4,12]");
}

BOOST_AUTO_TEST_CASE(what_it_cannot_do_is_said) {
  const auto refusal = [&](auto&& change, const std::string& told = kTold) {
    return engine_refusal([&] { decode(file(change, told), "video"); });
  };
  says(refusal([](std::vector<FileTensor>& tensors) {
         tensors.push_back(seeded_tensor("decoder.diff_blocks.0.gate_msa", {16}));
       }),
       {"ltx25_vae.safetensors", "decoder.diff_blocks.0.gate_msa", "gates"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         std::erase_if(tensors, [](const FileTensor& tensor) {
           return tensor.name == "decoder.diff_blocks.1.context_proj.weight";
         });
       }),
       {"decoder.diff_blocks.1.context_proj.weight", "pixels.layer.1"});
  std::string told = kTold;
  told.replace(told.find("\"x0\""), 4, "\"v\"");
  says(refusal(as_it_is, told), {"predicts 'v'"});
  says(refusal(as_it_is, "{}"), {"2 stages", "4"});
}

BOOST_AUTO_TEST_SUITE_END()
