// SCAIL 2, with weights that follow from their names, through the engine, against PyTorch
// (make_wan_scail_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kScailTolerance = 1e-5;
constexpr int kScailSteps = 2;
constexpr const char* kScailConfig = R"({"attention_head_dim": 16})";

struct WanScailFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_scail/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("plain", true, "wan_scail");
    change(tensors);
    const std::filesystem::path path = temporary / "plain.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& without = "") {
    return probe.call({model, "diffusion_model", kScailConfig, golden, clip + ".", without});
  }
  static std::vector<float> step_of(const heddle::Results& results, int step) {
    return results.floats("model.outputs", "out." + std::to_string(step));
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kScailSteps);
    for (int step = 0; step < kScailSteps; ++step) {
      const double error = relative_error(
          step_of(results, step), {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kScailTolerance, name << ", step " << step << ": " << error);
    }
  }
  static void says(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_scail, WanScailFixture)

BOOST_AUTO_TEST_CASE(the_velocity_by_pictures_poses_and_masks_equals_pytorch) {
  const std::filesystem::path model = file();
  for (const char* clip : {"plain", "apart", "odd", "alone", "pictures"})
    compare(call(model, clip), clip);
}

BOOST_AUTO_TEST_CASE(masks_of_poses_that_are_left_out_count_nothing) {
  const std::filesystem::path model = file();
  const auto bare = call(model, "plain", "half_pose"),
             none = call(model, "plain", "half_pose,pose_masks");
  for (int step = 0; step < kScailSteps; ++step)
    BOOST_TEST(step_of(bare, step) == step_of(none, step), "step " << step);
  // Of poses that are there they do count.
  BOOST_TEST(relative_error(step_of(call(model, "plain", "pose_masks"), 0),
                            step_of(call(model, "plain"), 0)) > kScailTolerance);
}

BOOST_AUTO_TEST_CASE(in_16_bits_the_velocity_by_poses_is_near) {
  constexpr double kNear = 0.02;
  ModelProbe narrow("bf16");
  const heddle::Results results =
      narrow.call({file(), "diffusion_model", kScailConfig, golden, "plain.", ""});
  const std::vector<float> all = expected.floats("plain.out"), made = step_of(results, 0);
  const double error =
      relative_error(made, {all.begin(), all.begin() + std::ptrdiff_t(made.size())});
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > kScailTolerance, "nothing was rounded");
}

BOOST_AUTO_TEST_CASE(settings_say_what_scail_reads) {
  const heddle::engine::Json settings =
      heddle::engine::parse_json(call(file(), "alone").text("model.settings"), "settings");
  const auto written = [&](const char* key) {
    return heddle::engine::write_json(*settings.find(key));
  };
  BOOST_TEST(written("mask_channels") == "5");
  BOOST_TEST(written("concat_channels") == "4");
  BOOST_TEST(written("vision_width") == "24");
  for (const char* key : {"reference_frame", "reference_stack", "concat_kept", "mask_clean"})
    BOOST_TEST(written(key) == "true", key);
}

BOOST_AUTO_TEST_CASE(what_a_file_of_scail_lacks_is_said) {
  const auto refusal = [&](auto&& change) {
    return engine_refusal([&] { call(file(change), "plain"); });
  };
  const auto without = [&](const std::string& name) {
    return refusal([&](std::vector<FileTensor>& tensors) {
      std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
    });
  };
  for (const char* name :
       {"patch_embedding_pose.weight", "patch_embedding_pose.bias", "patch_embedding_mask.bias"})
    says(without(name), {name, "plain.safetensors"});
  says(without("patch_embedding_mask.weight"), {"the first SCAIL", "Use a file of SCAIL 2"});
  says(refusal([](std::vector<FileTensor>& tensors) {
         for (FileTensor& tensor : tensors)
           if (tensor.name == "patch_embedding_pose.weight")
             tensor = seeded_tensor(tensor.name, {48, 5, 1, 2, 2});
       }),
       {"patch_embedding_pose.weight", "plain.safetensors"});
}

BOOST_AUTO_TEST_CASE(masks_of_another_size_are_refused) {
  const std::string text = engine_refusal([&] { call(file(), "plain", "reference"); });
  says(text, {"coloured masks of 120 tokens beside 72", "WanSCAILToVideo"});
}

BOOST_AUTO_TEST_SUITE_END()
