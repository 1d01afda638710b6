// Lotus and Stable Diffusion's x4 upscaler with weights that follow from their names, through the
// engine, against what diffusers makes of the same ones (make_shown_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/shown_models.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kShownTolerance = 1e-5;
constexpr int kShownSteps = 3;

struct Shown {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/shown/expected.safetensors";
  TensorFile expected{golden};

  heddle::Results call(const std::vector<FileTensor>& tensors, const std::string& prefix) {
    const std::filesystem::path path = temporary / "unet.safetensors";
    write_safetensors(path, tensors);
    return probe.call({path, "diffusion_model", "", golden, prefix + "."});
  }
  heddle::engine::Json settings(const std::string& kind) {
    return heddle::engine::parse_json(call(shown_model(kind), kind + "_odd").text("model.settings"),
                                      "settings");
  }
  void equals(const std::vector<FileTensor>& tensors, const std::string& prefix) {
    const heddle::Results results = call(tensors, prefix);
    const std::vector<float> all = expected.floats(prefix + ".out");
    const auto row = std::ptrdiff_t(all.size() / kShownSteps);
    for (int step = 0; step < kShownSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(prefix << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kShownTolerance, prefix << ", step " << step << ": " << error);
    }
  }
  std::string refused(const std::vector<FileTensor>& tensors, const std::string& prefix) {
    return engine_refusal([&] { call(tensors, prefix); });
  }
};

void shown_says(const std::string& text, const char* part) {
  BOOST_TEST(text.find(part) != std::string::npos, "'" << part << "' is not in: " << text);
}

// With another number of channels that it reads.
std::vector<FileTensor> reading(const char* kind, std::int64_t channels) {
  std::vector<FileTensor> tensors = shown_model(kind);
  for (FileTensor& tensor : tensors)
    if (tensor.name == "conv_in.weight")
      tensor = seeded_tensor(tensor.name, {tensor.shape[0], channels, 3, 3});
  return tensors;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(shown, Shown)

BOOST_AUTO_TEST_CASE(lotus_and_the_upscaler_equal_diffusers) {
  for (const std::string kind : {"lotus", "x4"})
    for (const char* shape : {"_square", "_odd"}) equals(shown_model(kind), kind + shape);
}

BOOST_AUTO_TEST_CASE(original_names_are_the_same) {
  for (const std::string kind : {"lotus", "x4"})
    for (const char* prefix : {"", "model.diffusion_model."}) {
      std::vector<FileTensor> tensors = shown_model(kind);
      name_shown_as_original(tensors, prefix);
      equals(tensors, kind + "_odd");
    }
}

BOOST_AUTO_TEST_CASE(settings_say_how_they_are_asked) {
  const heddle::engine::Json lotus = settings("lotus"), x4 = settings("x4");
  BOOST_TEST(lotus.at("sampling").as_string() == "img_to_img");
  BOOST_TEST(lotus.at("latent_scale").as_double() == 0.18215);
  const auto& task = lotus.at("task_numbers").as_array();
  const std::vector<float> told = expected.floats("lotus_odd.y");
  BOOST_TEST_REQUIRE(task.size() == told.size());
  for (std::size_t i = 0; i < task.size(); ++i)  // a last bit of PyTorch's cosine
    BOOST_TEST(std::abs(task[i].as_double() - double(told[i])) <= 1e-7);
  BOOST_TEST((lotus.find("pooled_width") == nullptr));

  BOOST_TEST(x4.at("sampling").as_string() == "v_prediction");
  BOOST_TEST(x4.at("latent_scale").as_double() == 0.08333);
  BOOST_TEST(x4.at("latent_downscale").as_int64() == 4);
  BOOST_TEST(x4.at("concat_channels").as_int64() == 3);
  BOOST_TEST(x4.at("noise_last").as_double() == 0.02);
}

BOOST_AUTO_TEST_CASE(others_that_are_told_so_are_refused) {
  shown_says(refused(reading("lotus", 8), "lotus_odd"),
             "Lotus that reads noise beside the picture");
  shown_says(refused(reading("x4", 8), "x4_odd"), "1000 classes of pictures and reads 4 channels");
}

BOOST_AUTO_TEST_SUITE_END()
