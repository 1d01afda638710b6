// A causal Wan 2.1, with weights that follow from their names, through the engine, against PyTorch
// (make_wan_causal_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kCausalTolerance = 1e-5;
constexpr int kCausalSteps = 2, kCausalLayers = 3;
constexpr const char* kCausalConfig = R"({"attention_head_dim": 16})";

struct WanCausalFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_causal/expected.safetensors";
  TensorFile expected{golden};

  // told: the metadata "config", with its quotes escaped.
  std::filesystem::path file(const std::string& told, const std::string& kind = "plain",
                             const std::string& folder = "wan_causal") const {
    const std::filesystem::path path = temporary / (kind + ".safetensors");
    write_safetensors(path, seeded_model(kind, true, folder), {{"config", told}});
    return path;
  }
  std::filesystem::path file() const { return file(R"({\"transformer\": {\"causal_ar\": true}})"); }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& without = "") {
    return probe.call({model, "diffusion_model", kCausalConfig, golden, clip + ".", without});
  }
  static std::vector<float> step_of(const heddle::Results& results, int step) {
    return results.floats("model.outputs", "out." + std::to_string(step));
  }
  void is_near(const std::vector<float>& made, const std::vector<float>& wanted,
               const std::string& name) {
    const double error = relative_error(made, wanted);
    BOOST_TEST_MESSAGE(name << ": relative error " << error);
    BOOST_TEST(error < kCausalTolerance, name << ": " << error);
  }
  void compare(const heddle::Results& results, const std::string& clip) {
    const std::vector<float> all = expected.floats(clip + ".out");
    const auto row = std::ptrdiff_t(all.size() / kCausalSteps);
    for (int step = 0; step < kCausalSteps; ++step)
      is_near(step_of(results, step), {all.begin() + row * step, all.begin() + row * (step + 1)},
              clip + ", step " + std::to_string(step));
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_causal, WanCausalFixture)

BOOST_AUTO_TEST_CASE(the_velocity_behind_frames_equals_pytorch) {
  const std::filesystem::path model = file();
  for (const char* clip : {"begin", "behind", "odd"}) compare(call(model, clip), clip);
}

BOOST_AUTO_TEST_CASE(keys_and_values_of_a_block_equal_pytorchs) {
  const std::filesystem::path model = file();
  for (const std::string clip : {"behind", "odd"}) {
    const heddle::Results results = call(model, clip);
    for (int layer = 0; layer < kCausalLayers; ++layer) {
      const std::string number = std::to_string(layer);
      is_near(results.floats("model.outputs",
                             "kept." + number + "." + std::to_string(kCausalSteps - 1)),
              expected.floats(clip + ".made." + number), clip + ", layer " + number);
    }
  }
  // Nothing is handed out where nothing is asked for.
  BOOST_TEST(call(model, "begin").floats("model.outputs", "kept.0.0").empty());
}

BOOST_AUTO_TEST_CASE(frames_before_count) {
  const std::filesystem::path model = file();
  const double change = relative_error(step_of(call(model, "behind", "kept.1"), 0),
                                       step_of(call(model, "behind"), 0));
  BOOST_TEST(change > 100 * kCausalTolerance, "relative change " << change);
}

BOOST_AUTO_TEST_CASE(in_16_bits_the_velocity_behind_frames_is_near) {
  constexpr double kNear = 0.02;
  ModelProbe narrow("bf16");
  const heddle::Results results =
      narrow.call({file(), "diffusion_model", kCausalConfig, golden, "behind.", ""});
  const std::vector<float> all = expected.floats("behind.out"), made = step_of(results, 0);
  const double error =
      relative_error(made, {all.begin(), all.begin() + std::ptrdiff_t(made.size())});
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > kCausalTolerance, "nothing was rounded");
}

BOOST_AUTO_TEST_CASE(the_files_metadata_say_that_a_model_is_causal) {
  const auto settings_of = [&](const std::string& told) {
    return heddle::engine::parse_json(call(file(told), "begin").text("model.settings"), "settings");
  };
  const heddle::engine::Json causal = settings_of(R"({\"transformer\": {\"causal_ar\": true}})");
  BOOST_TEST(heddle::engine::write_json(*causal.find("keeps_frames")) == "true");
  BOOST_TEST(heddle::engine::write_json(*causal.find("kept_width")) == "128");
  BOOST_TEST(causal.find("noise_shift")->as_double() == 5.0);
  for (const char* told : {R"({\"transformer\": {\"causal_ar\": false}})", R"({\"vae\": {}})"}) {
    const heddle::engine::Json other = settings_of(told);
    BOOST_TEST((other.find("keeps_frames") == nullptr));
    BOOST_TEST(other.find("noise_shift")->as_double() == 8.0);
  }
}

BOOST_AUTO_TEST_CASE(what_no_causal_model_reads_is_refused) {
  const std::string told = R"({\"transformer\": {\"causal_ar\": true}})";
  says(engine_refusal([&] { call(file(told, "picture", "wan"), "begin"); }),
       {"picture.safetensors", "causal_ar", "texts alone"});
  says(engine_refusal([&] { call(file("no json"), "begin"); }), {"metadata 'config'"});
  // 12 tokens of one size are no whole frames of another.
  TemporaryFolder other;
  std::vector<FileTensor> tensors;
  for (const char* name :
       {"begin.x", "begin.context", "begin.timestep", "odd.kept.0", "odd.kept.1", "odd.kept.2"}) {
    const auto& entry = expected.at(name);
    tensors.push_back({"wrong." + std::string(name).substr(std::string(name).find('.') + 1), "F32",
                       entry.shape, std::string(entry.bytes.begin(), entry.bytes.end())});
  }
  for (FileTensor& tensor : tensors)
    if (tensor.name == "wrong.x") {
      tensor.shape = {1, 2, 2, 8, 9};
      tensor.bytes.resize(2 * 2 * 8 * 9 * sizeof(float), '\0');
    }
  const std::filesystem::path wrong = other / "wrong.safetensors";
  write_safetensors(wrong, tensors);
  says(engine_refusal([&] {
         probe.call({file(), "diffusion_model", kCausalConfig, wrong, "wrong.", ""});
       }),
       {"12 tokens", "a frame of this latent has 20"});
}

BOOST_AUTO_TEST_SUITE_END()
