// SeedVR2 with weights that follow from their names, of all three kinds, against what a PyTorch
// module of our own makes of the same ones (make_seedvr_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kSeedvrTolerance = 2e-5;
constexpr const char* kSeedvrKinds[] = {"3b", "7b", "7b_shared"};

using SeedvrTensors = std::vector<FileTensor>;

struct SeedvrFixture {
  TemporaryFolder folder;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/seedvr/expected.safetensors";
  TensorFile expected{golden};
  ModelProbe probe;

  std::filesystem::path file(const std::string& kind, auto&& change) const {
    SeedvrTensors tensors = seeded_model(kind, false, "seedvr");
    change(tensors);
    const std::filesystem::path path = folder / "seedvr.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& kind) const {
    return file(kind, [](SeedvrTensors&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& size,
                       const std::string& config = "") {
    return probe.call({model, "diffusion_model", config, golden, size + "."});
  }
};

void refusal_says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(seedvr, SeedvrFixture)

BOOST_AUTO_TEST_CASE(pictures_and_videos_equal_those_of_pytorch) {
  for (const char* kind : kSeedvrKinds)
    for (const std::string size : {"video", "picture", "pictures"}) {
      const heddle::Results results = call(file(kind), size);
      const double error = relative_error(results.floats("model.outputs", "out.0"),
                                          expected.floats(size + "." + kind));
      BOOST_TEST_MESSAGE(kind << " " << size << ": relative error " << error);
      BOOST_TEST(error < kSeedvrTolerance, kind << " " << size << ": relative error " << error);
    }
}

BOOST_AUTO_TEST_CASE(a_prefix_gives_the_same_bytes) {
  const std::vector<float> original = call(file("3b"), "pictures").floats("model.outputs", "out.0");
  const std::filesystem::path renamed = file("3b", [](SeedvrTensors& tensors) {
    for (FileTensor& tensor : tensors) tensor.name = "model.diffusion_model." + tensor.name;
  });
  BOOST_TEST(original == call(renamed, "pictures").floats("model.outputs", "out.0"));
}

BOOST_AUTO_TEST_CASE(the_texts_of_the_file_are_given) {
  const heddle::Results results = call(file("3b"), "pictures", R"({"texts": true})");
  TensorFile tensors{folder / "seedvr.safetensors"};
  for (const std::string side : {"positive", "negative"})
    BOOST_TEST(results.floats("model.outputs", side + ".0") ==
               tensors.floats(side + "_conditioning"));
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file("3b"), "pictures").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"seedvr2\"");
  BOOST_TEST(written("latent_channels") == "4");
  BOOST_TEST(written("latent_scale") == "0.9152");
  BOOST_TEST(written("concat_channels") == "5");
  BOOST_TEST(written("file_texts") == "[5,7]");
  BOOST_TEST(written("noise_shift") == "1.0");
  BOOST_TEST(written("noise_multiplier") == "1000.0");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto without = [&](const std::string& name) {
    return engine_refusal([&] {
      call(file("3b",
                [&](SeedvrTensors& tensors) {
                  std::erase_if(tensors,
                                [&](const FileTensor& tensor) { return tensor.name == name; });
                }),
           "pictures");
    });
  };
  refusal_says(without("negative_conditioning"),
               {"seedvr.safetensors", "negative_conditioning", "made for ComfyUI"});
  refusal_says(without("blocks.1.attn.proj_out.txt.weight"),
               {"'blocks.1.attn.proj_out.txt.weight'", "layer.1.block", "missing"});
  refusal_says(engine_refusal([&] {
                 call(file("3b",
                           [](SeedvrTensors& tensors) {
                             for (FileTensor& tensor : tensors)
                               if (tensor.name == "vid_in.proj.weight")
                                 tensor = seeded_tensor(tensor.name, {96, 32});
                           }),
                      "pictures");
               }),
               {"32 numbers go in", "16 come out", "damaged"});
}

BOOST_AUTO_TEST_SUITE_END()
