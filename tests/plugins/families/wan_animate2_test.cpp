// Wan Animate 2, whose video follows another one, with weights that follow from their names,
// through the engine, against diffusers (make_wan_animate2_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wan_names.h"

using namespace heddle::test;

namespace {

constexpr double kAnimate2Tolerance = 1e-5;
constexpr int kAnimate2Steps = 3;
constexpr const char* kFollows = R"({"attention_head_dim": 16, "follows_poses": true})";

struct WanAnimate2Fixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_animate2/expected.safetensors";
  TensorFile expected{golden};

  template <class Change>
  std::filesystem::path file(Change&& change) const {
    std::vector<FileTensor> tensors = seeded_model("animate2", true, "wan_animate2");
    change(tensors);
    const std::filesystem::path path = temporary / "animate2.safetensors";
    write_safetensors(path, tensors);
    return path;
  }
  std::filesystem::path file() const {
    return file([](std::vector<FileTensor>&) {});
  }
  heddle::Results call(const std::filesystem::path& model, const std::string& clip,
                       const std::string& without = "", const char* config = kFollows) {
    return probe.call(
        {model, "diffusion_model", config, golden, "animate2." + clip + ".", without});
  }
  void compare(const heddle::Results& results, const std::string& name) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kAnimate2Steps);
    for (int step = 0; step < kAnimate2Steps; ++step) {
      const double error =
          relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                         {all.begin() + row * step, all.begin() + row * (step + 1)});
      BOOST_TEST_MESSAGE(name << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kAnimate2Tolerance, name << ", step " << step << ": " << error);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wan_animate2, WanAnimate2Fixture)

// Of one video of poses for two items, and of one for each; of an odd side.
BOOST_AUTO_TEST_CASE(the_velocity_by_a_video_that_is_followed_equals_diffusers) {
  const std::filesystem::path model = file();
  for (const std::string clip : {"short", "long", "odd"})
    compare(call(model, clip), "animate2." + clip);
}

BOOST_AUTO_TEST_CASE(nothing_need_be_followed) { compare(call(file(), "long", "pose"), "bare"); }

BOOST_AUTO_TEST_CASE(the_names_of_diffusers_give_the_same_bytes) {
  const std::vector<float> original = call(file(), "odd").floats("model.outputs", "out.1"),
                           diffusers = call(file([](std::vector<FileTensor>&tensors) {
                                              name_wan_as_diffusers(tensors);
                                            }),
                                            "odd")
                                           .floats("model.outputs", "out.1");
  BOOST_TEST(original == diffusers);
}

BOOST_AUTO_TEST_CASE(a_model_of_texts_alone_follows_nothing) {
  const std::string text = engine_refusal([&] {
    call(file([](std::vector<FileTensor>& tensors) {
           std::erase_if(tensors, [](const FileTensor& tensor) {
             return tensor.name.starts_with("img_emb.");
           });
         }),
         "short");
  });
  BOOST_TEST(text.find("follows no poses") != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
