// UNets of Stable Diffusion and SDXL with weights that follow from their names, through the engine,
// against what diffusers makes of the same ones (make_unet_goldens.py).
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/pytorch_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/unet_models.h"

using namespace heddle::test;

namespace {

constexpr double kUnetTolerance = 1e-5;
constexpr int kUnetSteps = 3;

struct UnetFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/unet/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change) const {
    std::vector<FileTensor> tensors = unet_model(kind);
    change(tensors);
    const std::filesystem::path path = temporary / "unet.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& kind) const {
    return file(kind, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& prefix,
                       const std::string& config = "") {
    return probe.call({model, "diffusion_model", config, golden, prefix + "."});
  }
  // A setting as JSON, or "".
  std::string setting(const std::filesystem::path& model, const std::string& prefix,
                      const char* key, const std::string& config = "") {
    const heddle::engine::Json settings =
        heddle::engine::parse_json(call(model, prefix, config).text("model.settings"), "settings");
    const heddle::engine::Json* found = settings.find(key);
    return found == nullptr ? "" : heddle::engine::write_json(*found);
  }
};

void unet_says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(unet, UnetFixture)

// The constants of ComfyUI's latent formats, from 0 to 1.
BOOST_AUTO_TEST_CASE(the_latents_are_previewed_by_their_factors) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file("sdxl"), "sdxl_odd").text("model.settings"), "settings");
  const std::vector<heddle::engine::Json>& rows = settings.at("preview_factors").as_array();
  BOOST_TEST_REQUIRE(rows.size() == 5u);
  const double first[] = {0.3651, 0.4232, 0.4341}, last[] = {0.1084, -0.0175, -0.0011};
  for (int c = 0; c < 3; ++c) {
    BOOST_TEST(rows.front().as_array()[c].as_double() == first[c] / 2,
               boost::test_tools::tolerance(1e-12));
    BOOST_TEST(rows.back().as_array()[c].as_double() == (last[c] + 1) / 2,
               boost::test_tools::tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_CASE(the_noise_equals_diffusers) {
  for (const std::string kind : {"sd1", "sd2", "sdxl", "refiner", "inpaint"})
    for (const std::string shape : {"_square", "_odd"}) {
      const heddle::Results results = call(file(kind), kind + shape);
      const std::vector<float> all = expected.floats(kind + shape + ".out");
      const auto row = std::ptrdiff_t(all.size() / kUnetSteps);
      for (int step = 0; step < kUnetSteps; ++step) {
        const double error =
            relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                           {all.begin() + row * step, all.begin() + row * (step + 1)});
        BOOST_TEST_MESSAGE(kind << shape << ", step " << step << ": relative error " << error);
        BOOST_TEST(error < kUnetTolerance, kind << shape << ", step " << step << ": " << error);
      }
    }
}

BOOST_AUTO_TEST_CASE(original_names_and_a_prefix_give_the_same_bytes) {
  const std::pair<const char*, int> kinds[] = {{"sd1", 2}, {"sd2", 1}, {"sdxl", 1}, {"refiner", 1}};
  for (const auto& [name, count] : kinds) {
    const char* const kind = name;
    const int layers = count;
    const std::string golden_of = std::string(kind) + "_odd";
    const auto bytes = [&](auto&& change) {
      return call(file(kind, change), golden_of).floats("model.outputs", "out.1");
    };
    const std::vector<float> diffusers = bytes([](std::vector<FileTensor>&) {}),
                             original = bytes([&](std::vector<FileTensor>&tensors) {
                               name_unet_as_original(tensors, layers);
                             }),
                             prefixed = bytes([&](std::vector<FileTensor>&tensors) {
                               name_unet_as_original(tensors, layers, "model.diffusion_model.");
                             });
    BOOST_TEST(original == diffusers, kind);
    BOOST_TEST(original == prefixed, kind);
  }
}

BOOST_AUTO_TEST_CASE(a_folder_of_pytorchs_file_alone_is_that_file) {
  const std::filesystem::path folder = temporary / "unet";
  std::filesystem::create_directories(folder);
  BOOST_TEST(engine_refusal([&] { call(folder, "sd1_odd"); }).find("holds no .safetensors") !=
             std::string::npos);
  write_pytorch(folder / "diffusion_pytorch_model.bin", unet_model("sd1"), "state_dict");
  const auto drawn = [&](const std::filesystem::path& model) {
    return call(model, "sd1_odd").floats("model.outputs", "out.1");
  };
  const std::vector<float> same = drawn(file("sd1"));
  BOOST_TEST(drawn(folder) == same);
  // A second one is not guessed at; one in safetensors comes before both.
  write_pytorch(folder / "other.pt", unet_model("sd2"), "state_dict");
  BOOST_TEST(engine_refusal([&] {
               call(folder, "sd1_odd");
             }).find("diffusion_pytorch_model.bin, other.pt") != std::string::npos);
  write_safetensors(folder / "diffusion_pytorch_model.safetensors", unet_model("sd1"));
  BOOST_TEST(drawn(folder) == same);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const auto path = file("sdxl");
  const auto written = [&](const char* key, const std::string& config = "") {
    return setting(path, "sdxl_odd", key, config);
  };
  BOOST_TEST(written("family") == "\"unet\"");
  BOOST_TEST(written("latent_channels") == "4");
  BOOST_TEST(written("latent_scale") == "0.13025");
  BOOST_TEST(written("noise_table") == "\"discrete\"");
  BOOST_TEST(written("sampling") == "\"eps\"");
  BOOST_TEST(written("context_width") == "128");
  BOOST_TEST(written("pooled_width") == "64");
  BOOST_TEST(written("size_numbers") == "6");
  BOOST_TEST(written("concat_channels") == "");
  // What marks of a checkpoint make of it.
  BOOST_TEST(written("sampling", R"({"v_pred": true})") == "\"v_prediction\"");
  BOOST_TEST(written("noise_table", R"({"v_pred": true, "ztsnr": true})") ==
             "\"discrete_zero_snr\"");
  BOOST_TEST(written("noise_table", R"({"edm_mean": true})") == "\"continuous_edm\"");
  BOOST_TEST(written("sampling", R"({"edm_mean": true})") == "\"edm\"");
  BOOST_TEST(written("noise_highest", R"({"edm_vpred.sigma_max": 120.5})") == "120.5");
  BOOST_TEST(setting(file("refiner"), "refiner_odd", "size_numbers") == "5");
  BOOST_TEST(setting(file("sd1"), "sd1_odd", "latent_scale") == "0.18215");
  BOOST_TEST(setting(file("inpaint"), "inpaint_odd", "concat_channels") == "5");
}

BOOST_AUTO_TEST_CASE(the_second_predicts_velocities_where_a_bias_spreads) {
  BOOST_TEST(setting(file("sd2"), "sd2_odd", "sampling") == "\"v_prediction\"");
  const auto narrow = file("sd2", [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name == "up_blocks.1.attentions.1.transformer_blocks.0.norm1.bias")
        tensor.bytes.assign(tensor.bytes.size(), '\0');
  });
  BOOST_TEST(setting(narrow, "sd2_odd", "sampling") == "\"eps\"");
  BOOST_TEST(setting(file("sd1"), "sd1_odd", "sampling") == "\"eps\"");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_wrong_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file("sd1", change), "sd1_square"); });
  };
  unet_says(refusal([](std::vector<FileTensor>& tensors) {
              std::erase_if(tensors, [](const FileTensor& tensor) {
                return tensor.name == "up_blocks.1.resnets.2.conv2.bias";
              });
            }),
            {"unet.safetensors", "'up_blocks.1.resnets.2.conv2.bias'", "output.5.resnet"});
  unet_says(refusal([](std::vector<FileTensor>& tensors) {
              std::erase_if(tensors, [](const FileTensor& tensor) {
                return tensor.name.starts_with("down_blocks.1.resnets.1.");
              });
            }),
            {"unet.safetensors"});
  unet_says(engine_refusal([&] {
              call(file("sdxl",
                        [](std::vector<FileTensor>& tensors) {
                          for (FileTensor& tensor : tensors)
                            if (tensor.name == "add_embedding.linear_1.weight") {
                              tensor.shape[1] = 300;
                              tensor.bytes.resize(std::size_t(4 * tensor.shape[0] * 300));
                            }
                        }),
                   "sdxl_square");
            }),
            {"300 numbers beside the text", "unCLIP"});
  for (const char* factor : {"1e-9", "0", "-2", "1e300"})
    unet_says(engine_refusal([&] {
                call(file("sd1"), "sd1_square",
                     std::string(R"({"unet_patches": [{"kind": "shrink", "stage": 1, "factor": )") +
                         factor + "}]}");
              }),
              {"downscale_factor is", "from 0.1 to 9"});
}

BOOST_AUTO_TEST_CASE(a_number_far_behind_the_others_is_read_up_to_the_first_gap) {
  const std::pair<const char*, const char*> strays[] = {
      {"input_blocks.2000000000.0.x", "'input_blocks.6.0.in_layers.2.weight'"},
      {"input_blocks.2147483647.0.x", "'input_blocks.6.0.in_layers.2.weight'"},
      {"output_blocks.2147483647.0.x", "more stages upwards than downwards"},
      {"down_blocks.2000000000.x", "'down_blocks.2.resnets.0.conv1.weight'"},
      {"down_blocks.1.resnets.2000000000.x", "'down_blocks.1.resnets.2.conv1.weight'"},
      {"up_blocks.2000000000.x", "more stages upwards than downwards"}};
  for (const auto& [name, why] : strays) {
    const char* const stray = name;
    const auto path = file("sd1", [&](std::vector<FileTensor>& tensors) {
      if (std::string(stray).find("put_") != std::string::npos) name_unet_as_original(tensors, 2);
      tensors.push_back({stray, "F32", {0}});
    });
    unet_says(engine_refusal([&] { call(path, "sd1_square"); }), {"unet.safetensors", why});
  }
}

BOOST_AUTO_TEST_SUITE_END()
