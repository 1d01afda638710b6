// Models whose goldens are else ends of whole drawings, in f32: one forward through the engine at
// two sizes, one with odd sides, against what diffusers makes of the same weights.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "tests/plugins/families/bf16_models.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kForwardTolerance = 1e-5;

struct ForwardFixture {
  ModelProbe probe;
  TemporaryFolder temporary;

  void hold(const Bf16Model& model, const std::string& name) {
    const std::filesystem::path path = temporary / "model.safetensors",
                                golden = tests_folder() / "plugins/goldens" / model.folder /
                                         "expected.safetensors";
    write_safetensors(path, model.made
                                ? model.made()
                                : seeded_model(model.model, model.by_other_name, model.folder));
    const TensorFile expected(golden);
    const heddle::Results results =
        probe.call({path, "diffusion_model", model.config, golden, name + "."});
    const std::vector<float> all = expected.floats(name + ".out");
    const std::int64_t steps = expected.at(name + ".out").shape[0];
    const auto row = std::ptrdiff_t(all.size()) / steps;
    for (std::int64_t step = 0; step < steps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(model.folder << " " << name << ", step " << step << ": " << error);
      BOOST_TEST(error < kForwardTolerance,
                 model.folder << " " << name << ", step " << step << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(forward_rows, ForwardFixture)

BOOST_AUTO_TEST_CASE(one_forward_equals_diffusers) {
  std::vector<std::string> held;
  for (const auto& models : {bf16_image_models(), bf16_wan_models()})
    for (const Bf16Model& model : models)
      for (const char* folder : {"unclip", "wan22", "wan_tracks", "zero123"})
        if (model.folder == folder)
          for (const std::string& name : model.cases) {
            hold(model, name);
            held.push_back(name);
          }
  BOOST_TEST(held.size() == 12u);
}

BOOST_AUTO_TEST_SUITE_END()
