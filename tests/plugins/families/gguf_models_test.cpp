// Diffusion transformers and language models in gguf files whose matrices stand in blocks, against
// what diffusers and transformers make of the numbers that the gguf package reads in them
// (make_gguf_models.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"

using namespace heddle::test;

namespace {

// Those of the same families in 16 bits: weights are the same numbers, so all that differs is the
// order of f32 roundings, and sines of timesteps, which f32 is short of digits for. A wrong term
// gives 1e-2 or more.
constexpr double kGgufTolerance = 5e-6, kGgufTimestepTolerance = 2e-5;
constexpr int kGgufSteps = 2;

struct GgufModels {
  ModelProbe probe;
  std::filesystem::path folder = tests_folder() / "plugins/goldens/gguf";
  TensorFile expected{folder / "expected.safetensors"};

  heddle::Results call(const std::string& name, const char* role, const char* config = "") {
    return probe.call(
        {folder / (name + ".gguf"), role, config, folder / "expected.safetensors", name + "."});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gguf_models, GgufModels)

BOOST_AUTO_TEST_CASE(transformers_in_blocks_equal_diffusers_on_their_weights) {
  for (const std::string name : {"qwen_image", "z_image", "chroma", "flux2"}) {
    const heddle::Results results = call(name, "diffusion_model");
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kGgufSteps);
    for (int step = 0; step < kGgufSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kGgufTimestepTolerance, name << ", step " << step << ": " << error);
    }
  }
}

BOOST_AUTO_TEST_CASE(language_models_in_blocks_with_names_of_llama_cpp_equal_transformers) {
  const std::pair<const char*, const char*> models[] = {
      {"qwen3", R"({"model_type": "qwen3"})"},
      {"qwen2vl", R"({"model_type": "qwen2_5_vl_text", "rope_theta": 1e6})"}};
  for (const auto& [name, config] : models) {
    const double error =
        relative_error(call(name, "text_encoder", config).floats("model.outputs", "last_hidden.0"),
                       expected.floats(std::string(name) + ".last_hidden"));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kGgufTolerance, name << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
