// The model families on tiny models whose weights are quantised, against what diffusers and
// transformers make of the same weights widened to f32 (make_quantised_models.py). Needs no trained
// model.
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"

using namespace heddle::test;

namespace {

// Those of the models that are not quantised (random_models_test.cpp): weights are the same
// numbers, so all that differs is the order of f32 roundings. A wrong term gives 1e-2 or more.
constexpr double kQuantisedTolerance = 5e-6, kQuantisedTimestepTolerance = 2e-5;

struct QuantisedModelsFixture {
  ModelProbe probe;
  std::filesystem::path folder = tests_folder() / "plugins/goldens/quantised";
  TensorFile expected{folder / "expected.safetensors"};

  heddle::Results call(const char* file, const char* role, const char* prefix) {
    return probe.call({folder / file, role, "", folder / "expected.safetensors", prefix});
  }

  void compare(const heddle::Results& results, const std::string& output, const std::string& golden,
               int step = 0, int steps = 1, double tolerance = kQuantisedTolerance) const {
    const std::vector<float> all = expected.floats(golden);
    const std::size_t row = all.size() / std::size_t(steps);
    const std::vector<float> wanted(all.begin() + std::ptrdiff_t(row * std::size_t(step)),
                                    all.begin() + std::ptrdiff_t(row * std::size_t(step + 1)));
    const double error = relative_error(
        results.floats("model.outputs", output + "." + std::to_string(step)), wanted);
    BOOST_TEST(error < tolerance, output << " against " << golden << ", step " << step
                                         << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(quantised_models, QuantisedModelsFixture)

BOOST_AUTO_TEST_CASE(flux_from_a_gguf_file_of_every_block_format_equals_diffusers_on_its_weights) {
  const heddle::Results results = call("flux.gguf", "diffusion_model", "flux.");
  for (int step = 0; step < 2; ++step)
    compare(results, "out", "flux.out", step, 2, kQuantisedTimestepTolerance);
}

BOOST_AUTO_TEST_CASE(t5_from_a_gguf_file_with_the_names_of_llama_cpp_equals_transformers) {
  compare(call("t5.gguf", "text_encoder", "t5."), "last_hidden", "t5.last_hidden");
}

BOOST_AUTO_TEST_CASE(flux_in_8_bits_equals_diffusers_on_its_weights_with_and_without_scales) {
  for (const char* name : {"scaled", "f8_e4m3", "f8_e5m2"}) {
    const heddle::Results results =
        call((std::string("flux_") + name + ".safetensors").c_str(), "diffusion_model", "flux_f8.");
    for (int step = 0; step < 2; ++step)
      compare(results, "out", std::string("flux_f8.out_") + name, step, 2,
              kQuantisedTimestepTolerance);
  }
}

BOOST_AUTO_TEST_CASE(flux_in_int8_equals_diffusers_on_its_weights_scaled_and_rotated) {
  const heddle::Results results = call("flux_int8.safetensors", "diffusion_model", "flux_int8.");
  for (int step = 0; step < 2; ++step) compare(results, "out", "flux_int8.out", step, 2);
}

// Each matrix in another form of ComfyUI's quantised files; rows of 64 numbers are widened on their
// way, those of 256 are multiplied packed.
BOOST_AUTO_TEST_CASE(flux_mixed_by_layer_of_4_6_and_8_bits_equals_diffusers_on_its_weights) {
  const TensorFile packed{folder / "expected_packed.safetensors"};
  const heddle::Results results = call("flux_packed.safetensors", "diffusion_model", "flux.");
  const std::vector<float> all = packed.floats("out");
  for (std::size_t step = 0; step < 2; ++step) {
    const auto first = all.begin() + std::ptrdiff_t(step * all.size() / 2);
    const double error =
        relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                       std::vector<float>(first, first + std::ptrdiff_t(all.size() / 2)));
    BOOST_TEST(error < kQuantisedTimestepTolerance, "step " << step << ": " << error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
