// SDPoseDrawKeypoints of random people against NumPy and Pillow (../goldens/make_pose_goldens.py):
// the same pixels.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/tensor_file.h"

using namespace heddle::test;

namespace {

using heddle::engine::cat;

struct PoseDrawFixture {
  const std::filesystem::path folder = tests_folder() / "plugins/goldens/pose";
  heddle::Engine engine{engine_options()};
  heddle::engine::Json cases =
      heddle::engine::parse_json(read_text(folder / "people.json"), "people.json");

  // Both are JSON.
  std::string nodes(const std::string& keypoints, const std::string& inputs = "{}") const {
    std::string quoted;
    for (const char letter : keypoints) quoted += letter == '"' ? "\\\"" : std::string(1, letter);
    return cat(R"({"given": {"class_type": "test.keypoints", "inputs": {"json": ")", quoted,
               R"("}}, "draw": {"class_type": "SDPoseDrawKeypoints", "inputs": {"keypoints":
               ["given", 0])",
               inputs == "{}" ? "" : ", " + inputs.substr(1, inputs.size() - 2),
               R"(}}, "look": {"class_type": "test.look", "inputs": {"value": ["draw", 0]}}})");
  }
  heddle::Results run(const std::string& flow) {
    return engine.start(engine.parse(flow), {{}, {"draw.IMAGE"}}).wait();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(pose_draw, PoseDrawFixture)

constexpr const char* kPoseCases[] = {"plain", "thick", "thin", "head", "body", "nobody"};
BOOST_DATA_TEST_CASE_F(PoseDrawFixture, people_are_drawn_as_comfyui_draws_them,
                       boost::unit_test::data::make(kPoseCases), name) {
  const heddle::engine::Json& told = cases.at(name);
  const heddle::Results made = run(nodes(heddle::engine::write_json(told.at("keypoints")),
                                         heddle::engine::write_json(told.at("inputs"))));
  TensorFile expected{folder / "expected.safetensors"};
  const auto& wanted = expected.at(name);
  BOOST_TEST(made.shape("draw.IMAGE") == wanted.shape, boost::test_tools::per_element());
  const std::vector<float> found = made.floats("draw.IMAGE");
  BOOST_TEST_REQUIRE(found.size() == wanted.bytes.size());
  std::size_t others = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    others += found[i] != float(static_cast<unsigned char>(wanted.bytes[i])) / 255.0f;
  BOOST_TEST(others == 0u, name << ": " << others << " of " << found.size() << " numbers differ");
}

BOOST_AUTO_TEST_CASE(without_pictures_there_is_a_black_one) {
  const heddle::Results made = run(nodes("[]"));
  BOOST_TEST(made.shape("draw.IMAGE") == (std::vector<std::int64_t>{1, 64, 64, 3}),
             boost::test_tools::per_element());
  for (const float number : made.floats("draw.IMAGE")) BOOST_TEST_REQUIRE(number == 0.0f);
}

BOOST_AUTO_TEST_CASE(what_is_no_list_of_people_is_refused) {
  const auto says = [&](const char* keypoints, const char* words) {
    const std::string text = engine_refusal([&] { run(nodes(keypoints)); });
    BOOST_TEST(text.find(words) != std::string::npos, words << " is not in: " << text);
  };
  says("{}", "no list of pictures");
  says(R"([{"canvas_width": 0, "canvas_height": 4, "people": []}])", "no 'canvas_width' from 1");
  says(R"([{"canvas_width": 4, "canvas_height": 4000000, "people": []}])", "'canvas_height'");
  says(R"([{"canvas_width": 4, "canvas_height": 4, "people": [{}]}])",
       "no 'pose_keypoints_2d' of 18 points");
  std::string many =
      R"([{"canvas_width": 4, "canvas_height": 4, "people": [{"pose_keypoints_2d": [1e9)";
  for (int i = 1; i < 54; ++i) many += ", 1";
  says((many + "]}]}]").c_str(), "a number beyond a million");
}

BOOST_AUTO_TEST_SUITE_END()
