// What nodes show reaches the results, as ComfyUI's history has it.
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using engine::Json;
using engine::parse_json;

namespace {

struct ShownFixture {
  test::TemporaryFolder folder;
  Engine engine{[this] {
    EngineOptions options = test::engine_options();
    options.output_dir = folder / "out";
    return options;
  }()};
  // What PreviewAny shows of the first output of a node.
  std::string shown(const char* node) {
    const std::string flow = test::workflow(
        {{"a", node}, {"show", R"({"class_type": "PreviewAny", "inputs": {"source": ["a", 0]}})"}});
    const Json ui = parse_json(engine.start(engine.parse(flow)).wait().ui(), "ui");
    BOOST_TEST(ui.size() == 1u);
    return ui.at("show").at("text").at(0).as_string();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(shown, ShownFixture)

BOOST_AUTO_TEST_CASE(any_value_is_shown_as_text) {
  BOOST_TEST(
      shown(R"({"class_type": "PrimitiveString", "inputs": {"value": "a \"b\"\n\u00e9"}})") ==
      "a \"b\"\n\xc3\xa9");
  BOOST_TEST(shown(R"({"class_type": "PrimitiveInt", "inputs": {"value": -7}})") == "-7");
  BOOST_TEST(shown(R"({"class_type": "PrimitiveBoolean", "inputs": {"value": true}})") == "True");
  BOOST_TEST(shown(R"({"class_type": "PrimitiveBoolean", "inputs": {"value": false}})") == "False");
  for (const auto& [number, text] : {std::pair("0.1", "0.1"),
                                     {"5", "5.0"},
                                     {"100000", "100000.0"},
                                     {"1e16", "1e+16"},
                                     {"-0.00001", "-1e-05"},
                                     {"0.0001", "0.0001"},
                                     {"0", "0.0"}})
    BOOST_TEST(shown((R"({"class_type": "PrimitiveFloat", "inputs": {"value": )" +
                      std::string(number) + "}}")
                         .c_str()) == text);
  BOOST_TEST(shown(R"({"class_type": "test.ramp", "inputs": {"count": 3}})") ==
             "tensor f32 (1, 1, 3)");
  BOOST_TEST(
      shown(
          R"({"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 32, "batch_size": 2}})") ==
      R"-({"samples":"tensor f32 (2, 4, 4, 8)","downscale_ratio_spacial":8})-");
}

BOOST_AUTO_TEST_CASE(nodes_are_told_apart_and_shown_again_when_nothing_changed) {
  const std::string flow = test::workflow(
      {{"9", R"({"class_type": "PreviewAny", "inputs": {"source": ["1", 0]}})"},
       {"1", R"({"class_type": "PrimitiveInt", "inputs": {"value": 1}})"},
       {"image",
        R"({"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 2, "color": 0}})"},
       {"save",
        R"({"class_type": "SaveImage", "inputs": {"images": ["image", 0], "filename_prefix": "sub/picture"}})"}});
  const std::string ui =
      R"({"9":{"text":["1"]},"save":{"images":[{"filename":"picture_00001_.png","subfolder":"sub","type":"output"},)"
      R"({"filename":"picture_00002_.png","subfolder":"sub","type":"output"}]}})";
  for (const char* which : {"first", "second"}) {
    std::map<std::string, std::string> heard;
    const auto observer = [&](const Event& event) {
      if (event.kind == Event::Kind::node_shows) heard[std::string(event.node)] = event.text;
    };
    const Results results = engine.start(engine.parse(flow), {.observer = observer}).wait();
    BOOST_TEST(results.ui() == ui, which);
    BOOST_TEST(heard["9"] == R"({"text":["1"]})", which);
    BOOST_TEST(heard.size() == 2u, which);
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_shows_nothing_has_an_empty_object) {
  const std::string flow =
      test::workflow({{"a", R"({"class_type": "test.add", "inputs": {}})"},
                      {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["a", 0]}})"}});
  BOOST_TEST(engine.start(engine.parse(flow)).wait().ui() == "{}");
}

BOOST_AUTO_TEST_SUITE_END()
