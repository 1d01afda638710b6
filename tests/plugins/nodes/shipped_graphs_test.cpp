// What the nodes of graphs/ tell before a run, against what they do in it: over the model that
// ships, with a few steps only.
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

BOOST_AUTO_TEST_SUITE_END()
