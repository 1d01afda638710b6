// Wan 2.1 with a patch of InfiniteTalk in its graph, with weights that follow from their names,
// through the engine, against PyTorch (make_wan_talk_goldens.py). Model and patch stand in one
// file here, as they do when a node has joined theirs.
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kSpeakTolerance = 1e-5;
constexpr int kSpeakSteps = 2;
constexpr const char *kPatchConfig = R"({"attention_head_dim": 16, "model_patches":
  [{"prefix": "model_patch.0.", "file": "patch.safetensors", "strength": 0.8}]})",
                     *kPlainConfig = R"({"attention_head_dim": 16})";

struct WanTalkFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_talk/expected.safetensors";
  TensorFile expected{golden};

  static std::vector<FileTensor> patch() { return seeded_model("patch", false, "wan_talk"); }
  std::filesystem::path file(std::vector<FileTensor> patch) const {
    std::vector<FileTensor> tensors = seeded_model("plain", true, "wan_talk");
    for (FileTensor& tensor : patch) {
      tensor.name = "model_patch.0." + tensor.name;
      tensors.push_back(std::move(tensor));
    }
    const std::filesystem::path path = temporary / "talk.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& without = "", const char* config = kPatchConfig) {
    return probe.call({model, "diffusion_model", config, golden, clip + ".", without});
  }
  static std::vector<float> step_of(const heddle::Results& results, int step) {
    return results.floats("model.outputs", "out." + std::to_string(step));
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kSpeakSteps);
    for (int step = 0; step < kSpeakSteps; ++step) {
      const double error = relative_error(
          step_of(results, step), {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kSpeakTolerance, name << ", step " << step << ": " << error);
    }
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_talk, WanTalkFixture)

BOOST_AUTO_TEST_CASE(the_velocity_by_one_speaker_equals_pytorch) {
  const std::filesystem::path model = file(patch());
  for (const char* clip : {"one", "odd"}) compare(call(model, clip), clip);
}

// Two items of a batch look at different regions.
BOOST_AUTO_TEST_CASE(the_velocity_by_two_speakers_equals_pytorch) {
  const std::filesystem::path model = file(patch());
  for (const char* clip : {"two", "wide", "crowd"}) compare(call(model, clip), clip);
}

BOOST_AUTO_TEST_CASE(without_a_sound_it_is_the_model_without_the_patch) {
  const std::filesystem::path model = file(patch());
  const heddle::Results silent = call(model, "one", "patch.0.hint"),
                        plain = call(model, "one", "patch.0.hint", kPlainConfig);
  for (int step = 0; step < kSpeakSteps; ++step)
    BOOST_TEST(step_of(silent, step) == step_of(plain, step));
}

// Every op takes what is made in 16 bits; what they round is far more than in 32.
BOOST_AUTO_TEST_CASE(in_16_bits_the_velocity_by_a_speaker_is_near) {
  constexpr double kNear = 0.02;
  ModelProbe narrow("bf16");
  const heddle::Results results =
      narrow.call({file(patch()), "diffusion_model", kPatchConfig, golden, "one.", ""});
  const std::vector<float> all = expected.floats("one.out"), made = step_of(results, 0);
  const double error =
      relative_error(made, {all.begin(), all.begin() + std::ptrdiff_t(made.size())});
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > kSpeakTolerance, "nothing was rounded");
}

BOOST_AUTO_TEST_CASE(what_a_patch_of_speakers_lacks_is_said) {
  for (const char* name :
       {"audio_proj.proj1.bias", "audio_proj.proj1_vf.weight", "audio_proj.norm.weight",
        "blocks.1.norm_x.weight", "blocks.2.audio_cross_attn.kv_linear.bias",
        "blocks.0.audio_cross_attn.proj.weight"}) {
    const std::string text = engine_refusal([&] {
      std::vector<FileTensor> tensors = patch();
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
      call(file(std::move(tensors)), "one");
    });
    says(text, {name, "patch.safetensors does not fit"});
  }
}

BOOST_AUTO_TEST_CASE(two_patches_of_speakers_are_refused) {
  const std::string text = engine_refusal([&] {
    call(file(patch()), "one", "", R"({"attention_head_dim": 16, "model_patches": [
      {"prefix": "model_patch.0.", "file": "patch.safetensors", "strength": 1.0},
      {"prefix": "model_patch.0.", "file": "other.safetensors", "strength": 1.0}]})");
  });
  says(text, {"other.safetensors", "patch.safetensors", "Leave out one"});
}

BOOST_AUTO_TEST_SUITE_END()
