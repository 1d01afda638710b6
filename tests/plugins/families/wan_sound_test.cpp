// Wan 2.2 S2V, which draws a video to a sound, with weights that follow from their names, whole and
// through the engine, against PyTorch (make_wan_sound_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kTalkTolerance = 1e-5;
constexpr int kTalkSteps = 2;

struct WanSoundFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_sound/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("talk", true, "wan_sound");
    change(tensors);
    const std::filesystem::path path = temporary / "talk.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& without = "") {
    return probe.call({model, "diffusion_model", R"({"attention_head_dim": 16})", golden,
                       "talk." + clip + ".", without});
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kTalkSteps);
    for (int step = 0; step < kTalkSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kTalkTolerance, name << ", step " << step << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_sound, WanSoundFixture)

// Of one sound for two items and of one for each, of as many moments as the latent has and of more;
// of more earlier frames than the model reads and of fewer.
BOOST_AUTO_TEST_CASE(the_velocity_by_a_sound_equals_pytorch) {
  const std::filesystem::path model = file();
  for (const std::string clip : {"short", "long", "small", "odd"})
    compare(call(model, clip), "talk." + clip);
}

BOOST_AUTO_TEST_CASE(none_of_what_goes_with_a_sound_need_be_given) {
  const std::filesystem::path model = file();
  for (const std::string input : {"heard", "reference", "motion", "followed"})
    compare(call(model, "small", input), "without." + input);
}

// Every op takes what is made in 16 bits; what they round is far more than in 32.
BOOST_AUTO_TEST_CASE(in_16_bits_the_velocity_by_a_sound_is_near) {
  constexpr double kNear = 0.02;
  ModelProbe narrow("bf16");
  const heddle::Results results = narrow.call(
      {file(), "diffusion_model", R"({"attention_head_dim": 16})", golden, "talk.long.", ""});
  const std::vector<float> all = expected.floats("talk.long.out"),
                           made = results.floats("model.outputs", "out.0");
  const double error =
      relative_error(made, {all.begin(), all.begin() + std::ptrdiff_t(made.size())});
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > kTalkTolerance, "nothing was rounded");
}

BOOST_AUTO_TEST_CASE(what_a_file_of_s2v_lacks_is_said) {
  for (const char* name :
       {"casual_audio_encoder.weights", "casual_audio_encoder.encoder.conv1_global.conv.bias",
        "casual_audio_encoder.encoder.padding_tokens", "audio_injector.injector.1.norm_q.weight",
        "audio_injector.injector_adain_layers.0.linear.bias", "cond_encoder.bias",
        "frame_packer.proj_4x.weight", "trainable_cond_mask.weight"}) {
    const std::string text = engine_refusal([&] {
      call(file([&](std::vector<FileTensor>& tensors) {
             std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
           }),
           "small");
    });
    BOOST_TEST(text.find(name) != std::string::npos, name << " is not in: " << text);
    BOOST_TEST(text.find("talk.safetensors") != std::string::npos, text);
  }
}

// Without their last layer there is none behind which the second look at the sound stands.
BOOST_AUTO_TEST_CASE(layers_that_look_at_a_sound_and_are_not_there_are_refused) {
  const std::string text = engine_refusal([&] {
    call(file([](std::vector<FileTensor>& tensors) {
           std::erase_if(tensors, [](const FileTensor& tensor) {
             return tensor.name.starts_with("blocks.4.");
           });
         }),
         "small");
  });
  for (const char* word : {"2 layers that look at a sound", "model of 4"})
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

BOOST_AUTO_TEST_SUITE_END()
