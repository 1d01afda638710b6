// Z-Image with weights that follow from their names, whole and through the engine, against what
// diffusers makes of the same ones (make_workflow_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in qwen_image_test.cpp: the sines of a low noise level, which is a high timestep here, are
// short of digits.
constexpr double kZImageTolerance = 2e-5;
constexpr int kZImageSteps = 3;

struct ZImageFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/workflows/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("z_image.transformer");
    change(tensors);
    const std::filesystem::path path = temporary / "z_image.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const char* prefix,
                       const std::string& config = "") {
    return probe.call({model, "diffusion_model", config, golden, prefix});
  }
  void compare(const heddle::Results& results, const std::string& shape) const {
    const std::vector<float> all = expected.floats(shape + "out");
    const auto row = std::ptrdiff_t(all.size() / kZImageSteps);
    for (int step = 0; step < kZImageSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(shape << "out, step " << step << ": relative error " << error);
      BOOST_TEST(error < kZImageTolerance,
                 shape << "out, step " << step << ": relative error " << error);
    }
  }
};

// The tensors under diffusers' names, queries, keys and values apart.
void name_as_diffusers(std::vector<FileTensor>& tensors) {
  const std::pair<const char*, const char*> names[] = {{"x_embedder.", "all_x_embedder.2-1."},
                                                       {"final_layer.", "all_final_layer.2-1."},
                                                       {"attention.out.", "attention.to_out.0."},
                                                       {"attention.q_norm.", "attention.norm_q."},
                                                       {"attention.k_norm.", "attention.norm_k."}};
  std::vector<FileTensor> renamed;
  for (FileTensor& tensor : tensors) {
    for (const auto& [from, to] : names)
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos)
        tensor.name.replace(at, std::string(from).size(), to);
    const std::size_t fused = tensor.name.find("qkv.");
    if (fused == std::string::npos) {
      renamed.push_back(tensor);
      continue;
    }
    const std::size_t size = tensor.bytes.size() / 3;
    for (int third = 0; third < 3; ++third) {
      const char* const part[] = {"to_q.", "to_k.", "to_v."};
      renamed.push_back({std::string(tensor.name).replace(fused, 4, part[third]),
                         tensor.dtype,
                         {tensor.shape[0] / 3, tensor.shape[1]},
                         tensor.bytes.substr(std::size_t(third) * size, size)});
    }
  }
  tensors = std::move(renamed);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(z_image, ZImageFixture)

BOOST_AUTO_TEST_CASE(the_velocity_equals_diffusers_for_tokens_that_fill_rows_and_that_do_not) {
  for (const char* shape : {"z_square.", "z_wide.", "z_odd."}) compare(call(file(), shape), shape);
}

BOOST_AUTO_TEST_CASE(diffusers_names_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file(change), "z_wide.").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes(name_as_diffusers),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file(), "z_wide.").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"z-image\"");
  BOOST_TEST(written("latent_channels") == "16");
  BOOST_TEST(written("context_width") == "24");
  BOOST_TEST(written("noise_table") == "\"discrete_flow\"");
  BOOST_TEST(written("noise_shift") == "3.0");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](const std::filesystem::path& model, const std::string& config = "") {
    return engine_refusal([&] { call(model, "z_wide.", config); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  const auto without = [&](const std::string& name) {
    return file([&](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    });
  };
  says(refusal(without("layers.1.feed_forward.w3.weight")),
       {"z_image.safetensors", "'layers.1.feed_forward.w3.weight'", "layer.1.block", "missing"});
  says(refusal(without("cap_pad_token")),
       {"z_image.safetensors", "'cap_pad_token'", "embed.text", "missing"});
  says(refusal(file([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "noise_refiner.0.adaLN_modulation.0.bias") {
             tensor.shape = {190};
             tensor.bytes.resize(4 * 190);
           }
       })),
       {"'noise_refiner.0.adaLN_modulation.0.bias'", "(190)", "(192)"});
  says(refusal(file(), R"({"axes_dims": [4, 6, 8]})"), {"(4, 6, 8)", "head of size 16"});
}

BOOST_AUTO_TEST_SUITE_END()
