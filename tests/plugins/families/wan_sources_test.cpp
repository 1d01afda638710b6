// Models of Wan that look at videos and pictures beside the one that they draw, as Bernini does,
// with weights that follow from their names, through the engine, against PyTorch
// (make_wan_sources_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kSourcesTolerance = 1e-5;
constexpr int kSourcesSteps = 2;
constexpr const char* kSourcesConfig = R"({"attention_head_dim": 16})";

struct WanSourcesFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_sources/expected.safetensors";
  TensorFile expected{golden};

  std::filesystem::path file() const {
    const std::filesystem::path path = temporary / "plain.safetensors";
    write_safetensors(path, seeded_model("plain", true, "wan_sources"));
    return path;
  }
  heddle::Results call(const std::string& clip, const std::string& without = "") {
    return probe.call({file(), "diffusion_model", kSourcesConfig, golden, clip + ".", without});
  }
  static std::vector<float> step_of(const heddle::Results& results, int step) {
    return results.floats("model.outputs", "out." + std::to_string(step));
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kSourcesSteps);
    for (int step = 0; step < kSourcesSteps; ++step) {
      const double error = relative_error(
          step_of(results, step), {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kSourcesTolerance, name << ", step " << step << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_sources, WanSourcesFixture)

BOOST_AUTO_TEST_CASE(the_velocity_beside_sources_equals_pytorch) {
  for (const char* clip : {"plain", "odd", "alone"}) compare(call(clip), clip);
}

BOOST_AUTO_TEST_CASE(in_16_bits_the_velocity_beside_sources_is_near) {
  constexpr double kNear = 0.02;
  ModelProbe narrow("bf16");
  const heddle::Results results =
      narrow.call({file(), "diffusion_model", kSourcesConfig, golden, "plain.", ""});
  const std::vector<float> all = expected.floats("plain.out"), made = step_of(results, 0);
  const double error =
      relative_error(made, {all.begin(), all.begin() + std::ptrdiff_t(made.size())});
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > kSourcesTolerance, "nothing was rounded");
}

BOOST_AUTO_TEST_SUITE_END()
