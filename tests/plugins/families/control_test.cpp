// ControlNets on tiny models whose weights follow from their names, and the denoisers that are
// given what they make, through the engine, against diffusers (make_control_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in random_models_test.cpp, the sines of a high timestep are short of digits.
constexpr double kControlTolerance = 1e-4;
constexpr int kControlSteps = 3;

std::filesystem::path golden() {
  return tests_folder() / "plugins/goldens/control/expected.safetensors";
}

struct ControlFixture {
  ModelProbe probe;
  TemporaryFolder folder;
  TensorFile expected{golden()};

  std::filesystem::path file(const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = folder / "model.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  heddle::Results call(const std::vector<FileTensor>& tensors, const char* role,
                       const std::string& name, const std::string& without = "") {
    return probe.call({file(tensors), role, "", golden(), name + ".", without});
  }
  // Each step of an output against the rows of a golden.
  void compare(const heddle::Results& results, const std::string& name, const std::string& output) {
    const std::vector<float> all = expected.floats(name + "." + output);
    const auto row = std::ptrdiff_t(all.size() / kControlSteps);
    for (int step = 0; step < kControlSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", output + "." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << "." << output << ", step " << step << ": " << error);
      BOOST_TEST(error < kControlTolerance, name << "." << output << ": relative error " << error);
    }
  }
  // All residuals of a ControlNet whose shapes are of this name.
  void compare_residuals(const std::string& name, int doubles, int singles = 0) {
    const heddle::Results results = call(seeded_model(name, false, "control"), "control_net", name);
    for (int i = 0; i < doubles; ++i) compare(results, name, "control.double." + std::to_string(i));
    for (int i = 0; i < singles; ++i) compare(results, name, "control.single." + std::to_string(i));
  }
  std::string settings_of(const std::string& name) {
    return call(seeded_model(name, false, "control"), "control_net", name).text("model.settings");
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(control, ControlFixture)

BOOST_AUTO_TEST_CASE(residuals_of_qwen_image_equal_diffusers) {
  compare_residuals("qwen_union", 1);
  compare_residuals("qwen_inpaint", 2);
}

BOOST_AUTO_TEST_CASE(qwen_image_spreads_few_residuals_over_its_blocks_as_diffusers_does) {
  const std::vector<FileTensor> model = seeded_model("qwen_image.transformer");
  for (const char* name : {"qwen_drawn", "qwen_each"})
    compare(call(model, "diffusion_model", name), name, "out");
  const heddle::Results without = call(model, "diffusion_model", "qwen_each", "control.double");
  const std::vector<float> all = expected.floats("qwen_each.out");
  const double moved =
      relative_error(without.floats("model.outputs", "out.0"),
                     {all.begin(), all.begin() + std::ptrdiff_t(all.size() / kControlSteps)});
  BOOST_TEST(moved > 0.01);
}

// Of two blocks, which would add the same residual, the first alone does.
BOOST_AUTO_TEST_CASE(qwen_image_adds_residuals_of_a_fun_control_net_at_first_blocks_alone) {
  const std::vector<FileTensor> model = seeded_model("qwen_image.transformer");
  compare(call(model, "diffusion_model", "qwen_first"), "qwen_first", "out");
}

BOOST_AUTO_TEST_CASE(residuals_of_flux_equal_diffusers) {
  compare_residuals("flux_union", 2, 3);
  compare_residuals("flux_plain", 1);
  // Of XLabs, in the original names.
  compare_residuals("flux_pixels", 2);
  const std::vector<float> told = expected.floats("flux_union.control.double.1");
  const heddle::Results untold =
      call(seeded_model("flux_union", false, "control"), "control_net", "flux_union", "mode");
  const double moved =
      relative_error(untold.floats("model.outputs", "control.double.1.0"),
                     {told.begin(), told.begin() + std::ptrdiff_t(told.size() / kControlSteps)});
  BOOST_TEST(moved > 1e-3);
}

BOOST_AUTO_TEST_CASE(flux_spreads_residuals_over_both_kinds_of_blocks_as_diffusers_does) {
  compare(call(seeded_model("flux", false, "control"), "diffusion_model", "flux_drawn"),
          "flux_drawn", "out");
}

BOOST_AUTO_TEST_CASE(residuals_of_stable_diffusion_3_equal_diffusers) {
  // Told a pooled text of zeros or not is the sampler's.
  compare_residuals("sd3_first", 2);
  compare_residuals("sd3_large", 1);
}

BOOST_AUTO_TEST_CASE(settings_say_what_samplers_need_of_a_control_net) {
  says(settings_of("qwen_union"), {R"("controls":"qwen-image")", R"("control_width":48)",
                                   R"("control_doubles":1)", R"("hint_channels":16)"});
  says(settings_of("qwen_inpaint"), {R"("hint_channels":17)"});
  says(settings_of("flux_union"), {R"("controls":"flux")", R"("control_modes":8)",
                                   R"("control_doubles":2)", R"("control_singles":3)"});
  says(settings_of("flux_pixels"), {R"("hint_pixels":true)", R"("control_cycles":true)"});
  says(settings_of("sd3_first"), {R"("latent_shift":0)", R"("zero_pooled":true)"});
  std::vector<FileTensor> edges = seeded_model("sd3_large", false, "control");
  edges.push_back({"control_type", "F32", {1}, heddle::test::bytes_of_floats({1})});
  says(call(edges, "control_net", "sd3_large").text("model.settings"),
       {R"("zero_pooled":false)", R"("hint_factor":63.75)"});
}

BOOST_AUTO_TEST_CASE(a_missing_residual_is_named) {
  std::vector<FileTensor> tensors = seeded_model("qwen_inpaint", false, "control");
  std::erase_if(tensors,
                [](const FileTensor& tensor) { return tensor.name == "controlnet_blocks.1.bias"; });
  says(engine_refusal([&] { call(tensors, "control_net", "qwen_inpaint"); }),
       {"model.safetensors", "'controlnet_blocks.1.bias'", "double.1.control"});
}

BOOST_AUTO_TEST_SUITE_END()
