// Language models whose matrices stand in int8, with scales and rotated, against what transformers
// makes of the numbers that they mean (make_quantised_texts.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"

using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(quantised_texts)

BOOST_AUTO_TEST_CASE(language_models_in_int8_equal_transformers_on_their_weights) {
  const std::filesystem::path folder = tests_folder() / "plugins/goldens/quantised_texts";
  const TensorFile expected(folder / "expected.safetensors");
  ModelProbe probe;
  const std::pair<const char*, const char*> models[] = {
      {"qwen3_int8", R"({"model_type": "qwen3"})"},
      {"qwen3_int8_convrot", R"({"model_type": "qwen3"})"},
      {"qwen2vl_int8_convrot", R"({"model_type": "qwen2_5_vl_text", "rope_theta": 1e6})"}};
  for (const auto& [model, config] : models) {
    const std::string name = model;
    const heddle::Results results =
        probe.call({folder / (name + ".safetensors"), "text_encoder", config,
                    folder / "expected.safetensors", name + "."});
    const double error = relative_error(results.floats("model.outputs", "last_hidden.0"),
                                        expected.floats(name + ".last_hidden"));
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < 5e-6, name << ": relative error " << error);  // as in language_gguf_test.cpp
  }
}

BOOST_AUTO_TEST_SUITE_END()
