// Wan 2.2 Animate, which follows poses and a face, with weights that follow from their names, whole
// and through the engine, against diffusers (make_wan_animate_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wan_names.h"

using namespace heddle::test;

namespace {

constexpr double kAnimateTolerance = 1e-5;
constexpr int kAnimateSteps = 3;

struct WanAnimateFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_animate/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("animate", true, "wan_animate");
    change(tensors);
    const std::filesystem::path path = temporary / "animate.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& without = "") {
    return probe.call({model, "diffusion_model", R"({"attention_head_dim": 16})", golden,
                       "animate." + clip + ".", without});
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kAnimateSteps);
    for (int step = 0; step < kAnimateSteps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kAnimateTolerance, name << ", step " << step << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_animate, WanAnimateFixture)

// Of one face and video of poses for two items, and of one for each; of as many frames of a face as
// the latent has, of fewer and of more.
BOOST_AUTO_TEST_CASE(the_velocity_by_poses_and_a_face_equals_diffusers) {
  const std::filesystem::path model = file();
  for (const std::string clip : {"short", "long", "odd", "few", "many"})
    compare(call(model, clip), "animate." + clip);
}

BOOST_AUTO_TEST_CASE(poses_and_a_face_need_not_be_given) {
  const std::filesystem::path model = file();
  compare(call(model, "long", "face"), "pose");
  compare(call(model, "long", "pose"), "face");
}

// Every op takes what is made in 16 bits; what they round is far more than in 32.
BOOST_AUTO_TEST_CASE(in_16_bits_the_velocity_is_near) {
  constexpr double kNear = 0.02;
  ModelProbe narrow("bf16");
  const heddle::Results results = narrow.call(
      {file(), "diffusion_model", R"({"attention_head_dim": 16})", golden, "animate.long.", ""});
  const std::vector<float> all = expected.floats("animate.long.out"),
                           made = results.floats("model.outputs", "out.0");
  const double error =
      relative_error(made, {all.begin(), all.begin() + std::ptrdiff_t(made.size())});
  BOOST_TEST_MESSAGE("relative error " << error);
  BOOST_TEST(error < kNear, "relative error " << error);
  BOOST_TEST(error > kAnimateTolerance, "nothing was rounded");
}

BOOST_AUTO_TEST_CASE(the_names_of_diffusers_and_a_prefix_give_the_same_bytes) {
  const auto bytes = [&](auto&& change) {
    return call(file(change), "odd").floats("model.outputs", "out.1");
  };
  const std::vector<float> original = bytes([](std::vector<FileTensor>&) {}),
                           diffusers = bytes([](std::vector<FileTensor>&tensors) {
                             name_animate_as_diffusers(tensors);
                           }),
                           prefixed = bytes([](std::vector<FileTensor>&tensors) {
                             for (FileTensor& tensor : tensors)
                               tensor.name = "model.diffusion_model." + tensor.name;
                           });
  BOOST_TEST(original == diffusers);
  BOOST_TEST(original == prefixed);
}

BOOST_AUTO_TEST_CASE(what_a_file_of_animate_lacks_is_said) {
  for (const char* name :
       {"pose_patch_embedding.bias", "motion_encoder.enc.net_app.convs.2.conv2.1.weight",
        "motion_encoder.enc.fc.3.weight", "motion_encoder.dec.direction.weight",
        "face_encoder.conv2.conv.bias", "face_encoder.padding_tokens",
        "face_adapter.fuser_blocks.1.linear1_kv.bias"}) {
    const std::string text = engine_refusal([&] {
      call(file([&](std::vector<FileTensor>& tensors) {
             std::erase_if(tensors, [&](const FileTensor& tensor) { return tensor.name == name; });
           }),
           "short");
    });
    BOOST_TEST(text.find(name) != std::string::npos, name << " is not in: " << text);
    BOOST_TEST(text.find("animate.safetensors") != std::string::npos, text);
  }
}

// Of another size than the model reads: here they are of a model with one halving less.
BOOST_AUTO_TEST_CASE(a_face_of_another_size_is_refused) {
  const std::string text = engine_refusal([&] {
    call(file([](std::vector<FileTensor>& tensors) {
           const std::string at = "motion_encoder.enc.net_app.convs.";
           std::erase_if(tensors, [&](const FileTensor& tensor) {
             return tensor.name.starts_with(at + "2.") || tensor.name.starts_with(at + "3.");
           });
           tensors.push_back(seeded_tensor(at + "2.weight", {12, 5, 4, 4}));
         }),
         "short");
  });
  for (const char* word : {"faces", "8 pixels", "16x16"})
    BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
}

BOOST_AUTO_TEST_SUITE_END()
