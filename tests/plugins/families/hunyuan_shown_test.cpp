// HunyuanVideo 1.0 that looks at a picture beside a video, with weights that follow from their
// names, through the engine, against PyTorch (make_hunyuan_shown_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// The guidance, 6000, is good to this in f32: its sines.
constexpr double kBesideTolerance = 2e-5;
constexpr int kBesideSteps = 2;

struct HunyuanShownFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/hunyuan_shown/expected.safetensors";
  TensorFile expected{golden};

  heddle::Results call(const std::string& clip, const std::filesystem::path& tensors,
                       const std::string& without = "") {
    const std::filesystem::path path = temporary / "shown.safetensors";
    write_safetensors(path, seeded_model("shown", true, "hunyuan_shown"));
    return probe.call({path, "diffusion_model", "{}", tensors, "shown." + clip + ".", without});
  }
  double error_of(const heddle::Results& results, const std::string& clip, int step) {
    const std::vector<float> all = expected.floats("shown." + clip + ".out");
    const auto row = std::ptrdiff_t(all.size() / kBesideSteps);
    return relative_error(results.floats("model.outputs", "out." + std::to_string(step)),
                          {all.begin() + row * step, all.begin() + row * (step + 1)});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hunyuan_shown, HunyuanShownFixture)

BOOST_AUTO_TEST_CASE(the_velocity_of_a_video_beside_a_picture_equals_pytorch) {
  for (const std::string clip : {"short", "odd", "two", "none"}) {
    const heddle::Results results = call(clip, golden);
    for (int step = 0; step < kBesideSteps; ++step) {
      const double error = error_of(results, clip, step);
      BOOST_TEST_MESSAGE(clip << ", step " << step << ": relative error " << error);
      BOOST_TEST(error < kBesideTolerance, clip << ": " << error);
    }
  }
}

BOOST_AUTO_TEST_CASE(without_the_picture_it_is_another_video) {
  BOOST_TEST(error_of(call("short", golden, "reference"), "short", 0) > 1e-2);
}

BOOST_AUTO_TEST_CASE(a_picture_and_a_first_frame_are_not_shown_together) {
  std::vector<FileTensor> tensors;
  for (const char* name : {"x", "timestep", "context", "y", "reference"}) {
    const auto& entry = expected.at(std::string("shown.odd.") + name);
    tensors.push_back({std::string("shown.odd.") + name, "F32", entry.shape,
                       std::string(entry.bytes.begin(), entry.bytes.end())});
  }
  tensors.push_back({"shown.odd.first_timestep", "F32", {1}, std::string(4, '\0')});
  const std::filesystem::path both = temporary / "both.safetensors";
  write_safetensors(both, tensors);
  const std::string text = engine_refusal([&] { call("odd", both); });
  for (const char* word : {"'custom'", "'v2 (replace)'", "HunyuanImageToVideo"})
    BOOST_TEST(text.find(word) != std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
