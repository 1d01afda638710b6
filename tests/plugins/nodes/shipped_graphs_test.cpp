// What the nodes of graphs/ tell before a run, against what they do in it: over the model that
// ships, with a few steps only.
#include <cmath>
#include <fstream>
#include <iterator>

#include <boost/test/unit_test.hpp>

#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_folder.h"

namespace {

const std::filesystem::path kGraphs = std::filesystem::path(HEDDLE_SOURCE_DIR) / "graphs";

struct ShippedFixture {
  heddle::test::TemporaryFolder folder;
  heddle::Engine::Data engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = heddle::test::engine_options();
    options.plugin_dirs.clear();
    options.model_dirs.push_back(kGraphs / "models");
    options.input_dir = kGraphs;
    options.output_dir = folder / "out";
    return options;
  }

  // The graph with `steps` in the place of its own number, which takes too long for a test.
  static std::string graph(const std::string& name, const std::string& steps) {
    std::ifstream file(kGraphs / name);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string own = "\"steps\": 28";
    const std::size_t at = text.find(own);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, name << " has no " << own);
    return text.replace(at, own.size(), "\"steps\": " + steps);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(shipped_graphs, ShippedFixture)

BOOST_AUTO_TEST_CASE(the_scene_is_told_as_it_is_run) {
  heddle::test::check_inference(engine, graph("scene.json", "2"));
}

BOOST_AUTO_TEST_CASE(a_picture_drawn_from_another_is_told_as_it_is_run) {
  heddle::test::check_inference(engine, graph("image_to_image.json", "2"));
}

BOOST_AUTO_TEST_CASE(a_preview_of_the_last_step_looks_like_the_picture) {
  heddle::Engine whole(options());
  std::vector<std::uint8_t> shown;
  heddle::StartOptions start;
  start.fetch = {"decode.IMAGE"};
  start.previews = heddle::PreviewMethod::linear;
  start.observer = [&](const heddle::Event& e) {
    if (e.kind != heddle::Event::Kind::preview) return;
    BOOST_TEST_REQUIRE(e.preview->width == 32u);
    BOOST_TEST_REQUIRE(e.preview->height == 32u);
    shown.assign(e.preview->pixels, e.preview->pixels + 3 * 32 * 32);
  };
  const heddle::Image picture = whole.start(whole.parse(graph("scene.json", "2")), std::move(start))
                                    .wait()
                                    .image("decode.IMAGE");
  BOOST_TEST_REQUIRE(shown.size() == 3u * 32 * 32);
  // Against the mean of the 8 x 8 pixels of each of its own.
  double error = 0, spread = 0, mean = 0;
  std::vector<double> small;
  for (int i = 0; i < 3 * 32 * 32; ++i) {
    const int x = i / 3 % 32, y = i / 3 / 32, c = i % 3;
    double sum = 0;
    for (int dy = 0; dy < 8; ++dy)
      for (int dx = 0; dx < 8; ++dx)
        sum += picture.pixels[std::size_t(((8 * y + dy) * 256 + 8 * x + dx) * 3 + c)];
    small.push_back(sum / 64);
    mean += small.back() / (3 * 32 * 32);
  }
  for (int i = 0; i < 3 * 32 * 32; ++i) {
    error += std::pow(small[std::size_t(i)] - shown[std::size_t(i)] / 255.0, 2);
    spread += std::pow(small[std::size_t(i)] - mean, 2);
  }
  BOOST_TEST(error < spread / 4, error << " of " << spread);
}

BOOST_AUTO_TEST_SUITE_END()
