// WanDancer, with weights that follow from their names, through the engine, against PyTorch
// (make_wan_dancer_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kDancerTolerance = 1e-5;
constexpr int kDancerSteps = 2;
constexpr const char* kDancerConfig = R"({"attention_head_dim": 16})";

struct WanDancerFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_dancer/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(const std::string& kind, Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model(kind, true, "wan_dancer");
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
    return probe.call({model, "diffusion_model", kDancerConfig, golden, clip + ".", without});
  }
  static std::vector<float> step_of(const heddle::Results& results, int step) {
    return results.floats("model.outputs", "out." + std::to_string(step));
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kDancerSteps);
    for (int step = 0; step < kDancerSteps; ++step) {
      const double error = relative_error(
          step_of(results, step), {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kDancerTolerance, name << ", step " << step << ": " << error);
    }
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_dancer, WanDancerFixture)

BOOST_AUTO_TEST_CASE(the_velocity_by_a_music_and_two_pictures_equals_pytorch) {
  const std::filesystem::path model = file("plain");
  for (const char* clip : {"plain", "far", "silent"}) compare(call(model, clip), clip);
}

BOOST_AUTO_TEST_CASE(a_music_encoder_in_parts_is_read) {
  compare(call(file("parted"), "parted"), "parted");
}

BOOST_AUTO_TEST_CASE(in_16_bits_the_velocity_by_a_music_is_near) {
  constexpr double kNear = 0.02;
  ModelProbe narrow("bf16");
  const heddle::Results results =
      narrow.call({file("plain"), "diffusion_model", kDancerConfig, golden, "far.", ""});
  const std::vector<float> all = expected.floats("far.out"), made = step_of(results, 0);
  const double error =
      relative_error(made, {all.begin(), all.begin() + std::ptrdiff_t(made.size())});
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > kDancerTolerance, "nothing was rounded");
}

BOOST_AUTO_TEST_CASE(settings_say_what_a_dancer_hears) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file("plain"), "plain").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("music_numbers") == "6");
  BOOST_TEST(written("concat_channels") == "8");
  BOOST_TEST(written("vision_width") == "24");
  BOOST_TEST(settings.find("reference_frame") == nullptr);
}

BOOST_AUTO_TEST_CASE(what_a_file_of_a_dancer_lacks_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file("plain", change), "plain"); });
  };
  for (const char* name :
       {"patch_embedding_global.bias", "head_global.modulation", "img_emb_refimage.proj.3.weight",
        "music_projection.bias", "music_encoder.1.self_attn.out_proj.weight",
        "music_encoder.0.norm2.bias", "music_injector.injector.1.o.weight"})
    says(refusal([&](std::vector<FileTensor>& tensors) {
           std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
         }),
         {name, "plain.safetensors"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         std::erase_if(tensors, [](const FileTensor& tensor) {
           return tensor.name.starts_with("music_injector.");
         });
       }),
       {"0 looks at a music", "5 layers"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "music_projection.weight")
             tensor = seeded_tensor(tensor.name, {20, 6});
       }),
       {"a music of 20 numbers", "4 heads", "48"});
}

BOOST_AUTO_TEST_CASE(frames_without_eighths_hear_no_music) {
  BOOST_TEST_REQUIRE(expected.has("silent.out"));
  // 3 x 2 tokens a frame.
  const std::string text = engine_refusal([&] {
    probe.call({file("plain"), "diffusion_model", kDancerConfig, golden, "uneven.", ""});
  });
  says(text, {"3 x 2 tokens", "multiple of 8", "WanDancerVideo"});
}

BOOST_AUTO_TEST_SUITE_END()
