// HunyuanVideo 1.0 that is shown a first frame, with weights that follow from their names, through
// the engine, against diffusers (make_hunyuan_begin_goldens.py).
#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

// The guidance, 6000, is good to this in f32: its sines.
constexpr double kBeginTolerance = 2e-5;
constexpr int kBeginSteps = 2;

struct HunyuanBeginFixture {
  ModelProbe probe;
  TemporaryFolder temporary;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/hunyuan_begin/expected.safetensors";
  TensorFile expected{golden};

  heddle::Results call(const std::string& kind, const std::string& clip,
                       const std::string& without = "") {
    const std::filesystem::path path = temporary / (kind + ".safetensors");
    write_safetensors(path, seeded_model(kind, true, "hunyuan_begin"));
    return probe.call({path, "diffusion_model", "{}", golden, kind + "." + clip + ".", without});
  }
  static std::vector<float> step_of(const heddle::Results& results, int step) {
    return results.floats("model.outputs", "out." + std::to_string(step));
  }
  double error_of(const heddle::Results& results, const std::string& name, int step) {
    const std::vector<float> all = expected.floats(name + ".out");
    const auto row = std::ptrdiff_t(all.size() / kBeginSteps);
    return relative_error(step_of(results, step),
                          {all.begin() + row * step, all.begin() + row * (step + 1)});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(hunyuan_begin, HunyuanBeginFixture)

BOOST_AUTO_TEST_CASE(the_velocity_of_a_video_with_a_first_frame_equals_diffusers) {
  for (const std::string kind : {"concat", "replace"})
    for (const std::string clip : {"short", "odd", "one"}) {
      const heddle::Results results = call(kind, clip);
      for (int step = 0; step < kBeginSteps; ++step) {
        const double error = error_of(results, kind + "." + clip, step);
        BOOST_TEST_MESSAGE(kind << "." << clip << ", step " << step << ": relative error "
                                << error);
        BOOST_TEST(error < kBeginTolerance, kind << "." << clip << ": " << error);
      }
    }
}

// What is told of the first frame's level counts.
BOOST_AUTO_TEST_CASE(without_the_level_of_its_first_frame_it_is_another_video) {
  BOOST_TEST(error_of(call("replace", "short", "first_timestep"), "replace.short", 0) > 1e-2);
}

BOOST_AUTO_TEST_SUITE_END()
