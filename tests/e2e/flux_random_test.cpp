// ComfyUI's four FLUX workflows from prompt to picture over small random weights under the names
// that the workflows ask for. Only the size, the number of steps and the seed are set, as --set
// does.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

#include "tests/e2e/flux_folder.h"

using namespace heddle::test;

namespace {

constexpr int kWidth = 64, kHeight = 48;

// The inputs of one of the workflows that are set, and its output of latents.
struct Inputs {
  std::string size, steps, seed, latent;
};

Inputs inputs_of(const std::string& workflow) {
  if (workflow.ends_with("_checkpoint")) return {"27", "31.steps", "31.seed", "31.LATENT"};
  return {workflow == "flux_dev" ? "27" : "5", "17.steps", "25.noise_seed", "13.output"};
}

struct Drawn {
  std::vector<float> latent;
  heddle::Image picture;
  std::vector<std::string> files;
};

struct RandomFlux {
  FluxFolder folder{FluxFolder::Content::random};
  heddle::Engine engine{folder.options()};

  Drawn draw(const std::string& name, const std::string& seed = "18446744073709551615",
             const std::string& prompt = "") {
    heddle::Workflow flow = FluxFolder::load(engine, name);
    const Inputs inputs = inputs_of(name);
    flow.set(inputs.size + ".width", std::to_string(kWidth));
    flow.set(inputs.size + ".height", std::to_string(kHeight));
    flow.set(inputs.steps, "2");
    flow.set(inputs.seed, seed);
    if (!prompt.empty()) flow.set("6.text", prompt);
    const heddle::Results results = engine.start(flow, {{}, {inputs.latent, "8.IMAGE"}}).wait();
    return {results.floats(inputs.latent, "samples"), results.image("8.IMAGE"), results.files()};
  }
};

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Width and height as a PNG file's first chunk states them; (0, 0) when it is none.
std::pair<std::uint32_t, std::uint32_t> png_size(const std::string& file) {
  if (file.size() < 24 || file.compare(0, 8, "\x89PNG\r\n\x1a\n") != 0) return {0, 0};
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | static_cast<unsigned char>(file[at + i]);
    return value;
  };
  return {number(16), number(20)};
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux_with_random_weights, RandomFlux)

BOOST_AUTO_TEST_CASE(every_workflow_draws_a_finite_picture_and_saves_it) {
  for (const char* name : kFluxWorkflows) {
    const Drawn drawn = draw(name);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(drawn.picture.width == kWidth);
      BOOST_TEST(drawn.picture.height == kHeight);
      BOOST_TEST(drawn.picture.channels == 3);
      BOOST_TEST(drawn.latent.size() == std::size_t(16 * kWidth * kHeight / 64));
      for (const std::vector<float>* values : {&drawn.latent, &drawn.picture.pixels}) {
        BOOST_TEST(std::ranges::all_of(*values, [](float x) { return std::isfinite(x); }));
        // Numbers beyond what a network of this scale gives would hide behind the clamp.
        BOOST_TEST(std::ranges::all_of(*values, [](float x) { return std::fabs(x) < 100; }));
      }
      const auto [least, most] = std::ranges::minmax(drawn.picture.pixels);
      BOOST_TEST(most - least > 0.1f);
      BOOST_REQUIRE(drawn.files.size() == 1u);
      const auto size = png_size(read_text(drawn.files[0]));
      BOOST_TEST(size.first == unsigned(kWidth));
      BOOST_TEST(size.second == unsigned(kHeight));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_whole_checkpoint_gives_the_bytes_of_separate_files) {
  for (const std::string name : {"flux_dev", "flux_schnell"}) {
    const Drawn parts = draw(name), whole = draw(name + "_checkpoint");
    BOOST_TEST(same_bytes(parts.latent, whole.latent), name << ": the latents differ");
    BOOST_TEST(same_bytes(parts.picture.pixels, whole.picture.pixels),
               name << ": the pictures differ");
  }
}

BOOST_AUTO_TEST_CASE(seed_prompt_and_model_each_change_the_picture) {
  const Drawn first = draw("flux_dev");
  BOOST_TEST(!same_bytes(first.picture.pixels, draw("flux_dev", "1").picture.pixels));
  BOOST_TEST(!same_bytes(first.picture.pixels,
                         draw("flux_dev", "18446744073709551615", "a whale").picture.pixels));
  BOOST_TEST(!same_bytes(first.picture.pixels, draw("flux_schnell").picture.pixels));
}

BOOST_AUTO_TEST_CASE(another_prompt_reads_no_weight_from_the_files_again) {
  const Drawn first = draw("flux_dev");
  const heddle::MemoryReport before = engine.host_memory();
  BOOST_TEST(before.read_first > 0u);
  BOOST_TEST(before.read_again == 0u);
  const Drawn second = draw("flux_dev", "18446744073709551615", "a whale");
  BOOST_TEST(!same_bytes(first.picture.pixels, second.picture.pixels));
  BOOST_TEST(engine.host_memory().read_first == before.read_first);
  BOOST_TEST(engine.host_memory().read_again == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
