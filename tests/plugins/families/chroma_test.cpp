// Chroma with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_chroma_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/chroma_names.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kChromaTolerance = 1e-5;
constexpr int kChromaSteps = 3;

struct ChromaFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/chroma/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("transformer", false, "chroma");
    change(tensors);
    const std::filesystem::path path = temporary / "chroma.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix) {
    return probe.call({model, "diffusion_model", "", golden, prefix + "."});
  }
  void compare(const std::string& prefix) {
    const heddle::Results results = call(file(), prefix);
    const std::vector<float> all = expected.floats(prefix + ".out");
    const auto row = std::ptrdiff_t(all.size() / kChromaSteps);
    for (int step = 0; step < kChromaSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(prefix << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kChromaTolerance, prefix << ", step " << step << ": " << error);
    }
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(chroma, ChromaFixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers) {
  for (const char* shape : {"square", "wide", "odd"}) compare(shape);
}

BOOST_AUTO_TEST_CASE(a_guidance_is_one_more_number_that_modulations_follow) {
  compare("told");
  const std::vector<float> untold =
      probe.call({file(), "diffusion_model", "", golden, "told.", "guidance"})
          .floats("model.outputs", "out.0");
  const std::vector<float> all = expected.floats("told.out");
  const double moved =
      relative_error(untold, {all.begin(), all.begin() + std::ptrdiff_t(untold.size())});
  BOOST_TEST(moved > 100 * kChromaTolerance, "the guidance changed " << moved);
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file(change), "odd").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_chroma_as_diffusers),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file(), "square").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"chroma\"");
  BOOST_TEST(written("noise_table") == "\"flux\"");
  BOOST_TEST(written("noise_mu") == "1.15");
  BOOST_TEST(written("default_guidance") == "0.0");
  BOOST_TEST(written("context_width") == "160");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file(change), "square"); });
  };
  const auto without = [](const std::string& name) {
    return [name](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    };
  };
  says(refusal(without("distilled_guidance_layer.layers.1.out_layer.bias")),
       {"chroma.safetensors", "'distilled_guidance_layer.layers.1.out_layer.bias'",
        "approximator.layer.1", "missing"});
  says(refusal(without("distilled_guidance_layer.norms.1.scale")), {"approximator.layer.1"});
  says(refusal(without("single_blocks.1.linear2.weight")), {"single.1.block"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "distilled_guidance_layer.in_proj.weight") {
             tensor.shape[1] -= 4;
             tensor.bytes.resize(tensor.bytes.size() - 4 * 4 * 32);
           }
       }),
       {"'distilled_guidance_layer.in_proj.weight'", "60 numbers", "multiple of 8"});
}

BOOST_AUTO_TEST_SUITE_END()
