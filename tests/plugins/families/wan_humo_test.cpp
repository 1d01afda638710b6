// HuMo, with weights that follow from their names, through the engine, against PyTorch
// (make_wan_humo_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kHumoTolerance = 1e-5;
constexpr int kHumoSteps = 2;
constexpr const char* kHumoConfig = R"({"attention_head_dim": 16})";

struct WanHumoFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_humo/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(kind, true, "wan_humo");
    change(tensors);
    const std::filesystem::path path = temporary / (kind + ".safetensors");
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file(const std::string& kind) const {
    return file(kind, [](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& without = "") {
    return probe.call({model, "diffusion_model", kHumoConfig, golden, clip + ".", without});
  }
  static std::vector<float> step_of(const heddle::Results& results, int step) {
    return results.floats("model.outputs", "out." + std::to_string(step));
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kHumoSteps);
    for (int step = 0; step < kHumoSteps; ++step) {
      const double error = relative_error(
          step_of(results, step), {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kHumoTolerance, name << ", step " << step << ": " << error);
    }
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_humo, WanHumoFixture)

BOOST_AUTO_TEST_CASE(the_velocity_by_a_sound_and_a_picture_equals_pytorch) {
  const std::filesystem::path model = file("plain");
  for (const char* clip : {"plain", "odd", "alone"}) compare(call(model, clip), clip);
}

BOOST_AUTO_TEST_CASE(the_velocity_beside_black_frames_equals_pytorch) {
  compare(call(file("beside"), "beside"), "beside");
}

BOOST_AUTO_TEST_CASE(in_16_bits_the_velocity_by_a_sound_is_near) {
  constexpr double kNear = 0.02;
  ModelProbe narrow("bf16");
  const heddle::Results results =
      narrow.call({file("beside"), "diffusion_model", kHumoConfig, golden, "beside.", ""});
  const std::vector<float> all = expected.floats("beside.out"), made = step_of(results, 0);
  const double error =
      relative_error(made, {all.begin(), all.begin() + std::ptrdiff_t(made.size())});
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > kHumoTolerance, "nothing was rounded");
}

BOOST_AUTO_TEST_CASE(settings_say_what_humo_hears) {
  const auto settings_of = [&](const char* kind) {
    return heddle::engine::parse_json(call(file(kind), kind).text("model.settings"), "settings");
  };
  const heddle::engine::Json settings = settings_of("beside");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("heard_window") == "8");
  BOOST_TEST(written("heard_states") == "5");
  BOOST_TEST(written("heard_width") == "4");
  BOOST_TEST(written("concat_channels") == "20");
  BOOST_TEST(settings.find("concat_always")->as_array().size() == 3);
  BOOST_TEST(settings_of("plain").find("concat_always") == nullptr);
}

BOOST_AUTO_TEST_CASE(what_a_file_of_humo_lacks_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file("plain", change), "plain"); });
  };
  for (const char* name :
       {"audio_proj.audio_proj_glob_2.layer.bias", "audio_proj.audio_proj_glob_norm.layer.weight",
        "blocks.1.audio_cross_attn_wrapper.norm1_audio.weight",
        "blocks.2.audio_cross_attn_wrapper.audio_cross_attn.k.weight",
        "blocks.0.audio_cross_attn_wrapper.audio_cross_attn.norm_q.weight"})
    says(refusal([&](std::vector<FileTensor>& tensors) {
           std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
         }),
         {name, "plain.safetensors"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "audio_proj.audio_proj_glob_1.layer.weight")
             tensor = seeded_tensor(tensor.name, {20, 41});
       }),
       {"41 numbers of a sound", "8 moments of 5 states"});
}

BOOST_AUTO_TEST_SUITE_END()
