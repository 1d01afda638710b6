// Chroma Radiance with weights that follow from their names, whole and through the engine, against
// PyTorch (make_radiance_goldens.py).
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kRadianceTolerance = 1e-6;  // velocities have the input in them
constexpr int kRadianceSteps = 3;
constexpr const char* kSequential = R"({"sequential_text": true})";

struct RadianceFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/radiance/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const char* model, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(model, false, "radiance");
    change(tensors);
    const std::filesystem::path path = temporary / "radiance.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const char* model = "filter") const {
    return file(model, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix,
                       const char* config = "") {
    return probe.call({model, "diffusion_model", config, golden, prefix + "."});
  }
  // The largest error of a step.
  double error(const heddle::Results& results, const std::string& prefix) const {
    const std::vector<float> all = expected.floats(prefix + ".out");
    const auto row = std::ptrdiff_t(all.size() / kRadianceSteps);
    double most = 0;
    for (int step = 0; step < kRadianceSteps; ++step)
      most = std::max(most,
                      relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                                     {all.begin() + row * step, all.begin() + row * (step + 1)}));
    BOOST_TEST_MESSAGE(prefix << ": relative error " << most);
    return most;
  }
  void compare(const char* model, const std::string& prefix, const char* config = "") {
    const double most = error(call(file(model), prefix, config), prefix);
    BOOST_TEST(most < kRadianceTolerance, prefix << ": " << most);
  }
  static auto without(const std::string& name) {
    return [name](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    };
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(radiance, RadianceFixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_pytorch) {
  for (const char* shape : {"square", "wide", "odd"}) compare("filter", shape);
}

BOOST_AUTO_TEST_CASE(a_matrix_for_a_last_layer_and_a_file_that_makes_velocities) {
  compare("linear", "linear");
}

BOOST_AUTO_TEST_CASE(more_squares_than_are_drawn_at_once) { compare("finest", "finest"); }

BOOST_AUTO_TEST_CASE(
    text_tokens_stand_one_after_another_where_it_is_asked_for_or_the_file_says_so) {
  compare("linear", "sequential", kSequential);
  const auto marked = [](std::vector<FileTensor>& tensors) {
    tensors.push_back({"__sequential__", "F32", {0}, ""});
  };
  const double told = error(call(file("linear", marked), "sequential"), "sequential");
  BOOST_TEST(told < kRadianceTolerance, told);
  const double untold = error(call(file("linear"), "sequential"), "sequential");
  BOOST_TEST(untold > 100 * kRadianceTolerance, "it changed " << untold);
}

BOOST_AUTO_TEST_CASE(settings_say_that_there_is_no_autoencoder) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file(), "square").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"chroma_radiance\"");
  BOOST_TEST(written("latent_channels") == "3");
  BOOST_TEST(written("latent_downscale") == "1");
  BOOST_TEST(written("patch") == "16");
  BOOST_TEST(written("noise_mu") == "1.15");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file("filter", change), "square"); });
  };
  const auto reshaped = [](const std::string& name, std::size_t axis, std::int64_t size) {
    return [name, axis, size](std::vector<FileTensor>& tensors) {
      for (FileTensor& tensor : tensors)
        if (tensor.name == name) {
          tensor.shape[axis] = size;
          tensor = seeded_tensor(name, tensor.shape);
        }
    };
  };
  says(refusal(without("img_in_patch.weight")), {"radiance.safetensors", "'img_in_patch.weight'"});
  says(refusal(without("nerf_image_embedder.embedder.0.weight")),
       {"'nerf_image_embedder.embedder.0.weight' is missing", "Chroma Radiance"});
  says(refusal(without("nerf_blocks.1.param_generator.bias")),
       {"'nerf_blocks.1.param_generator.bias'", "nerf.1.block"});
  says(refusal(without("nerf_final_layer_conv.conv.weight")), {"nerf.final"});
  says(refusal(reshaped("nerf_image_embedder.embedder.0.weight", 1, 13)),
       {"reads 10 waves", "damaged"});
  says(refusal(reshaped("nerf_blocks.0.param_generator.weight", 0, 100)), {"makes 100 numbers"});
  says(refusal(reshaped("nerf_blocks.1.norm.scale", 0, 9)), {"'nerf_blocks.1.norm.scale'"});
  says(refusal(reshaped("img_in_patch.weight", 2, 8)), {"'img_in_patch.weight'", "(48, 3, 8, 16)"});
}

BOOST_AUTO_TEST_CASE(a_picture_that_is_too_small_to_be_completed_is_refused) {
  const std::filesystem::path small = temporary / "small.safetensors";
  write_safetensors(
      small, {seeded_tensor("small.x", {1, 3, 6, 16}), seeded_tensor("small.context", {1, 3, 160}),
              seeded_tensor("small.timestep", {1})});
  says(engine_refusal([&] {
         probe.call({file(), "diffusion_model", "", small, "small."});
       }),
       {"16x6 pixels", "squares of 16"});
}

BOOST_AUTO_TEST_SUITE_END()
