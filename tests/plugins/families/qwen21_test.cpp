// Qwen-Image 2.1 with weights that follow from their names, whole and through the engine, against
// what diffusers makes of the same ones (make_qwen21_goldens.py, make_qwen21_picture_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/joined_gates.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kQwen21Tolerance = 1e-5;
constexpr int kQwen21Steps = 3;

struct Qwen21Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/qwen21/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("transformer", false, "qwen21");
    change(tensors);
    const std::filesystem::path path = temporary / "qwen21.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix) {
    return probe.call({model, "diffusion_model", "", golden, prefix + "."});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen21, Qwen21Fixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers) {
  const std::filesystem::path model = file([](std::vector<FileTensor>&) {});
  for (const std::string shape : {"square", "wide", "odd"}) {
    const heddle::Results results = call(model, shape);
    const std::vector<float> all = expected.floats(shape + ".out");
    const auto row = std::ptrdiff_t(all.size() / kQwen21Steps);
    for (int step = 0; step < kQwen21Steps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(shape << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kQwen21Tolerance, shape << ", step " << step << ": " << error);
    }
  }
}

// The matrices that raise the MLPs are one each, as ComfyUI has them.
BOOST_AUTO_TEST_CASE(pictures_in_their_places_among_the_text_equal_diffusers) {
  const std::filesystem::path pictures =
      tests_folder() / "plugins/goldens/qwen21_pictures/expected.safetensors";
  TensorFile wanted{pictures};
  const std::filesystem::path model = file(join_gates);
  for (const std::string shape : {"between", "end"}) {
    const heddle::Results results =
        probe.call({model, "diffusion_model", "", pictures, shape + "."});
    const std::vector<float> all = wanted.floats(shape + ".out");
    const auto row = std::ptrdiff_t(all.size() / kQwen21Steps);
    for (int step = 0; step < kQwen21Steps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST(error < kQwen21Tolerance, shape << ", step " << step << ": " << error);
    }
  }
  // Without its place a picture stands at the end, where the next one is not to precede it.
  const std::string refusal = engine_refusal([&] {
    probe.call({model, "diffusion_model", "", pictures, "between.", "slot.0"});
  });
  for (const char* word : {"picture 2", "token 5", "at 7"})
    BOOST_TEST(refusal.find(word) != std::string::npos, "'" << word << "' is not in: " << refusal);
}

BOOST_AUTO_TEST_CASE(a_prefix_changes_nothing_and_what_is_missing_is_said) {
  const auto prefixed = file([](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) tensor.name = "model.diffusion_model." + tensor.name;
  });
  const heddle::Results results = call(prefixed, "odd");
  const std::vector<float> all = expected.floats("odd.out");
  BOOST_TEST(relative_error(results.floats("model.outputs", "out.0"),
                            {all.begin(), all.begin() + std::ptrdiff_t(all.size()) /
                                                            kQwen21Steps}) < kQwen21Tolerance);
  const heddle::engine::Json settings =
      heddle::engine::parse_json(results.text("model.settings"), "settings");
  BOOST_TEST(heddle::engine::write_json(*settings.find("family")) == "\"qwen-image-2.1\"");
  BOOST_TEST(heddle::engine::write_json(*settings.find("latent_downscale")) == "16");
  const auto cut = file([](std::vector<FileTensor>& tensors) {
    std::erase_if(tensors, [](const FileTensor& tensor) {
      return tensor.name == "transformer_blocks.1.img_mlp.proj.weight";
    });
  });
  const std::string refusal = engine_refusal([&] { call(cut, "square"); });
  for (const char* word :
       {"qwen21.safetensors", "'transformer_blocks.1.img_mlp.proj.weight'", "layer.1", "missing"})
    BOOST_TEST(refusal.find(word) != std::string::npos, "'" << word << "' is not in: " << refusal);
}

BOOST_AUTO_TEST_SUITE_END()
