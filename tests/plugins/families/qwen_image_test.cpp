// Qwen-Image on a tiny model with random weights, whole and through the engine, against what
// diffusers makes of the same files (make_qwen_image_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// As in random_models_test.cpp: the sines of a high timestep are short of digits, those of the last
// step, of up to 125 radians, are not. A wrong term gives 1e-2 or more.
constexpr double kQwenTolerance = 5e-6, kQwenTimestepTolerance = 2e-5;
constexpr const char* kRole = "diffusion_model";
constexpr int kSteps = 3;

std::filesystem::path qwen_folder() { return tests_folder() / "plugins/goldens/qwen_image"; }
std::filesystem::path weights() {
  return qwen_folder() / "transformer/diffusion_pytorch_model.safetensors";
}

struct QwenImageFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  TensorFile expected{qwen_folder() / "expected.safetensors"};

  static std::string config() {
    std::string text = read_text(qwen_folder() / "transformer/config.json");
    return text.replace(text.find('{'), 1, "{\"expose_blocks\": true, ");
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& config,
                       const char* prefix) {
    return probe.call({model, kRole, config, qwen_folder() / "expected.safetensors", prefix});
  }
  // The folder's tensors, changed, as a single file.
  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors;
    const TensorFile all(weights());
    for (const auto& [name, entry] : all.entries())
      tensors.push_back({name, entry.dtype, entry.shape, entry.bytes});
    change(tensors);
    const std::filesystem::path path = temporary / "single.safetensors";
    write_safetensors(path, tensors);
    return path;
  }

  static void compare(const std::vector<float>& got, const std::vector<float>& wanted,
                      const std::string& name, double tolerance = kQwenTolerance) {
    const double error = relative_error(got, wanted);
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < tolerance, name << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(qwen_image, QwenImageFixture)

BOOST_AUTO_TEST_CASE(every_block_and_the_velocity_equal_diffusers_for_two_shapes_and_texts) {
  for (const std::string shape : {"square.", "wide."}) {
    const heddle::Results results = call(qwen_folder() / "transformer", config(), shape.c_str());
    int blocks = 0;
    for (const auto& [name, entry] : expected.entries()) {
      if (!name.starts_with(shape + "double.")) continue;
      compare(results.floats("model.outputs", name.substr(shape.size()) + ".2"),
              expected.floats(name), name);
      ++blocks;
    }
    BOOST_TEST(blocks == 4);
    const std::vector<float> all = expected.floats(shape + "out");
    const auto row = std::ptrdiff_t(all.size() / kSteps);
    for (int step = 0; step < kSteps; ++step)
      compare(results.floats("model.outputs", "out." + std::to_string(step)),
              {all.begin() + row * step, all.begin() + row * (step + 1)},
              shape + "out, step " + std::to_string(step),
              step == kSteps - 1 ? kQwenTolerance : kQwenTimestepTolerance);
  }
}

BOOST_AUTO_TEST_CASE(pictures_that_it_is_shown_give_the_velocity_of_diffusers) {
  for (const std::string name : {"shown", "several", "timed"}) {
    const heddle::Results results =
        call(qwen_folder() / "transformer", config(), (name + ".").c_str());
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kSteps);
    for (int step = 0; step < kSteps; ++step)
      compare(results.floats("model.outputs", "out." + std::to_string(step)),
              {all.begin() + row * step, all.begin() + row * (step + 1)},
              name + ".out, step " + std::to_string(step),
              step == kSteps - 1 ? kQwenTolerance : kQwenTimestepTolerance);
  }
  BOOST_TEST(relative_error(expected.floats("timed.out"), expected.floats("several.out")) > 1e-3);
}

BOOST_AUTO_TEST_CASE(files_of_2511_show_pictures_without_noise) {
  const std::string axes = R"({"axes_dims_rope": [16, 4, 4])";
  const auto method = [&](const std::filesystem::path& model, const std::string& config) {
    const heddle::engine::Json settings =
        heddle::engine::parse_json(call(model, config, "wide.").text("model.settings"), "settings");
    return heddle::engine::write_json(*settings.find("reference_method"));
  };
  const auto marked = file([](std::vector<FileTensor>& tensors) {
    tensors.push_back({"__index_timestep_zero__", "F32", {0}, ""});
  });
  BOOST_TEST(method(marked, axes + "}") == "\"index_timestep_zero\"");
  BOOST_TEST(method(qwen_folder() / "transformer", axes + "}") == "\"index\"");
  BOOST_TEST(method(qwen_folder() / "transformer", axes + R"(, "zero_cond_t": true})") ==
             "\"index_timestep_zero\"");
}

BOOST_AUTO_TEST_CASE(a_single_file_behind_a_prefix_gives_the_bytes_of_the_folder) {
  const auto bytes = [&](const std::filesystem::path& model) {
    return call(model, read_text(qwen_folder() / "transformer/config.json"), "wide.")
        .floats("model.outputs", "out.1");
  };
  const std::filesystem::path whole = file([](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) tensor.name = "model.diffusion_model." + tensor.name;
  });
  const std::vector<float> of_folder = bytes(qwen_folder() / "transformer"), of_file = bytes(whole);
  BOOST_TEST_REQUIRE(of_file.size() == of_folder.size());
  BOOST_TEST(std::memcmp(of_file.data(), of_folder.data(), 4 * of_file.size()) == 0);
}

BOOST_AUTO_TEST_CASE(settings_say_what_readers_of_the_model_need) {
  const heddle::engine::Json settings = heddle::engine::parse_json(
      call(qwen_folder() / "transformer", config(), "wide.").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("family") == "\"qwen-image\"");
  BOOST_TEST(written("latent_channels") == "4");
  BOOST_TEST(written("context_width") == "24");
  BOOST_TEST(written("noise_table") == "\"flux\"");
  BOOST_TEST(written("noise_mu") == "1.15");
}

BOOST_AUTO_TEST_CASE(what_is_missing_wrong_or_not_supported_is_said) {
  const auto refusal = [&](const std::filesystem::path& model, const std::string& config = "{}") {
    return engine_refusal([&] { call(model, config, "wide."); });
  };
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  };
  using Tensors = std::vector<FileTensor>;
  const std::string axes = R"({"axes_dims_rope": [16, 4, 4]})";
  const auto lacking = file([](Tensors& tensors) {
    std::erase_if(tensors, [](const FileTensor& tensor) {
      return tensor.name == "transformer_blocks.1.attn.add_k_proj.weight";
    });
  });
  says(refusal(lacking, axes),
       {"single.safetensors", "'transformer_blocks.1.attn.add_k_proj.weight'", "double.1",
        "missing", "(48, 48)"});
  const auto short_bias = file([](Tensors& tensors) {
    for (FileTensor& tensor : tensors)
      if (tensor.name == "norm_out.linear.bias") {
        tensor.shape = {94};
        tensor.bytes.resize(2 * 94);
      }
  });
  says(refusal(short_bias, axes), {"'norm_out.linear.bias'", "(94)", "(96)"});
  says(refusal(qwen_folder() / "transformer", R"({"axes_dims_rope": [4, 6]})"), {"2 axes", "3"});
}

BOOST_AUTO_TEST_SUITE_END()
