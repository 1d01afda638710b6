// Krea 2 with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_krea2_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/krea2_names.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kKrea2Tolerance = 1e-5;
constexpr int kKrea2Steps = 3;

struct Krea2Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/krea2/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("transformer", false, "krea2");
    change(tensors);
    const std::filesystem::path path = temporary / "krea2.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix) {
    return probe.call({model, "diffusion_model", "", golden, prefix + "."});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(krea2, Krea2Fixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers) {
  const std::filesystem::path model = file();
  for (const std::string shape : {"square", "wide", "odd"}) {
    const heddle::Results results = call(model, shape);
    const std::vector<float> all = expected.floats(shape + ".out");
    const auto row = std::ptrdiff_t(all.size() / kKrea2Steps);
    for (int step = 0; step < kKrea2Steps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(shape << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kKrea2Tolerance, shape << ", step " << step << ": " << error);
    }
  }
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file(change), "odd").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_krea2_as_diffusers),
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
  BOOST_TEST(written("family") == "\"krea2\"");
  BOOST_TEST(written("noise_table") == "\"flux\"");
  BOOST_TEST(written("noise_mu") == "1.15");
  BOOST_TEST(written("context_width") == "288");
  BOOST_TEST(settings.find("latent_means")->as_array().size() == 16);
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file(change), "square"); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto without = [](const std::string& name) {
    return [name](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    };
  };
  says(refusal(without("blocks.1.mlp.up.weight")),
       {"krea2.safetensors", "'blocks.1.mlp.up.weight'", "layer.1.block", "missing"});
  says(refusal(without("blocks.1.mod.lin")), {"'blocks.1.mod.lin'", "layer.1.modulation"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "blocks.0.attn.wk.weight") {
             tensor.shape[0] -= 2;
             tensor.bytes.resize(tensor.bytes.size() - 4 * 2 * 64);
           }
       }),
       {"'blocks.0.attn.wq.weight'", "keys 30", "heads of 16"});
}

BOOST_AUTO_TEST_CASE(eight_bit_integers_are_refused_and_not_taken_for_numbers) {
  const std::string refusal = engine_refusal([&] {
    call(file([](std::vector<FileTensor>& tensors) {
           for (FileTensor& tensor : tensors)
             if (tensor.name == "blocks.1.attn.wo.weight") {
               tensor.dtype = "I8";
               tensor.bytes.resize(tensor.bytes.size() / 4);
             }
         }),
         "square");
  });
  for (const char* word : {"krea2.safetensors", "'blocks.1.attn.wo.weight'", "comfy_quant", "fp8"})
    BOOST_TEST(refusal.find(word) != std::string::npos, "'" << word << "' is not in: " << refusal);
}

BOOST_AUTO_TEST_SUITE_END()
