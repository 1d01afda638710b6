// graphs/scene.json for ten prompts and seeds, some above 32 bits, against what diffusers makes of
// the same noise, noise levels and prompts in f32 (plugins/goldens/make_stage_goldens.py).
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "engine/base/json.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kLatentTolerance = 1e-4;  // |a - b| / |b|
constexpr double kLeastDecibels = 70;
constexpr int kStep = 4;  // the golden pictures keep every 4th row and column

std::vector<float> every_fourth(const heddle::Image& picture) {
  std::vector<float> kept;
  const auto width = std::size_t(picture.width), channels = std::size_t(picture.channels);
  for (std::size_t y = 0; y < std::size_t(picture.height); y += kStep)
    for (std::size_t x = 0; x < width; x += kStep)
      for (std::size_t c = 0; c < channels; ++c)
        kept.push_back(picture.pixels[(y * width + x) * channels + c]);
  return kept;
}

// Of pictures from 0 to 1.
double decibels(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return -HUGE_VAL;
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    squares += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return -10 * std::log10(squares / double(a.size()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ten_prompts)

BOOST_AUTO_TEST_CASE(latents_and_pictures_of_ten_prompts_equal_diffusers,
                     *boost::unit_test::label("long")) {
  const auto goldens = tests_folder() / "plugins/goldens/stages";
  const TensorFile golden(goldens / "stages.safetensors");
  const heddle::engine::Json record =
      heddle::engine::parse_json(read_text(goldens / "stages.json"), "stages.json");
  heddle::EngineOptions options = engine_options();
  options.compute = {{"cpu", "f32"}};
  const TemporaryFolder output;
  options.output_dir = output.path();
  heddle::Engine engine(options);
  const auto& prompts = record.at("prompts").as_array();
  BOOST_TEST(prompts.size() == 10u);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::string prompt = prompts[i].at("prompt").as_string();
    heddle::Workflow flow =
        engine.load(std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs/scene.json");
    flow.set("prompt.text", prompt);
    flow.set("sampler.seed", heddle::engine::write_json(prompts[i].at("seed")));
    flow.set("sampler.steps", heddle::engine::write_json(record.at("steps")));
    flow.set("sampler.cfg", heddle::engine::write_json(record.at("guidance")));
    const heddle::Results results =
        engine.start(flow, {{}, {"sampler.LATENT", "decode.IMAGE"}}).wait();
    const std::string row = "." + std::to_string(i);
    const double error =
        relative_error(results.floats("sampler.LATENT", "samples"), golden.floats("latents" + row));
    const double likeness =
        decibels(every_fourth(results.image("decode.IMAGE")), golden.floats("pictures" + row));
    BOOST_TEST_MESSAGE(i << ": relative error " << error << ", " << likeness << " dB");
    BOOST_TEST(error < kLatentTolerance, prompt << ": relative error " << error);
    BOOST_TEST(likeness > kLeastDecibels, prompt << ": " << likeness << " dB");
  }
}

BOOST_AUTO_TEST_SUITE_END()
