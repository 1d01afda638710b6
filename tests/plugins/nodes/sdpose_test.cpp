// SDPoseKeypointExtractor with a small random SDPose, from pictures to people, against ComfyUI's
// steps in PyTorch and SciPy (../goldens/make_sdpose_goldens.py).
#include <algorithm>
#include <cmath>

#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/sdpose_models.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

using heddle::engine::cat;
// Of a picture's pixels: a step of Newton's on the flat maps of random weights makes much of what
// 32 bits round. Scores: of the largest.
constexpr double kPosePixels = 2e-2, kPoseScores = 1e-4;
constexpr const char* kPersonParts[] = {"pose_keypoints_2d", "foot_keypoints_2d",
                                        "face_keypoints_2d", "hand_right_keypoints_2d",
                                        "hand_left_keypoints_2d"};

struct SdPoseNodeFixture {
  TemporaryFolder folder;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/sdpose/expected.safetensors";
  TensorFile expected{golden};
  heddle::Engine engine{options()};

  void write(const std::string& name, const std::vector<FileTensor>& tensors) const {
    const std::filesystem::path path = folder / "models" / (name + ".safetensors");
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, tensors);
  }
  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    if (std::filesystem::exists(folder / "models/vae")) return options;
    write("diffusion_models/sdpose", sdpose_tensors());
    std::vector<FileTensor> lotus = seeded_model("unet", false, "sdpose");
    name_unet_as_original(lotus, 1);
    write("diffusion_models/lotus", lotus);
    write("vae/sdpose", seeded_model("vae", false, "sdpose"));
    const TensorFile::Entry& text = expected.at("text");
    write("embeddings/lotus_conditioning", {{"conditioning", text.dtype, text.shape, text.bytes}});
    return options;
  }
  // boxes: JSON, or empty.
  std::string nodes(const std::string& boxes, const std::string& picture = "",
                    const std::string& model = "sdpose") const {
    return cat(R"({"file": {"class_type": "UNETLoader", "inputs": {"unet_name": ")", model,
               R"(.safetensors", "weight_dtype": "default"}}, "vae": {"class_type": "VAELoader",
               "inputs": {"vae_name": "sdpose.safetensors"}}, "picture": {)",
               picture.empty() ? cat(R"("class_type": "test.image", "inputs": {"path": ")",
                                     golden.string(), R"(", "name": "picture"})")
                               : picture,
               R"(}, "find": {"class_type": "SDPoseKeypointExtractor", "inputs": {"model":
               ["file", 0], "vae": ["vae", 0], "image": ["picture", 0], "batch_size": 2)",
               boxes.empty() ? "" : cat(R"(, "bboxes": {"__value__": )", boxes, "}"),
               R"(}}, "draw": {"class_type": "SDPoseDrawKeypoints", "inputs": {"keypoints":
               ["find", 0]}}, "look": {"class_type": "test.look", "inputs": {"value":
               ["draw", 0]}}, "show": {"class_type": "PreviewAny", "inputs": {"source":
               ["find", 0]}}})");
  }
  heddle::engine::Json found(const std::string& flow) {
    const heddle::Results made = engine.start(engine.parse(flow), {{}, {}}).wait();
    const heddle::engine::Json ui = heddle::engine::parse_json(made.ui(), "ui");
    return heddle::engine::parse_json(ui.at("show").at("text").at(std::size_t{0}).as_string(),
                                      "keypoints");
  }
  void compare(const heddle::engine::Json& person, const char* name) const {
    std::vector<double> made;
    for (const char* part : kPersonParts)
      for (const heddle::engine::Json& number : person.at(part).as_array())
        made.push_back(number.as_double());
    const std::vector<float> wanted = expected.floats(name);
    BOOST_TEST_REQUIRE(made.size() == wanted.size());
    double largest = 0, scores = 0, best = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      double& most = i % 3 == 2 ? scores : largest;
      most = std::max(most, std::abs(made[i] - double(wanted[i])));
      if (i % 3 == 2) best = std::max(best, double(wanted[i]));
    }
    scores /= best;
    BOOST_TEST_MESSAGE(name << ": points differ by " << largest << ", scores by " << scores);
    BOOST_TEST(largest < kPosePixels, name << ": points differ by " << largest);
    BOOST_TEST(scores < kPoseScores, name << ": scores differ by " << scores);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sdpose_nodes, SdPoseNodeFixture)

// A picture as a whole, and a box of it beside one that lies outside.
BOOST_AUTO_TEST_CASE(people_are_those_of_comfyui) {
  const heddle::engine::Json whole = found(nodes(""));
  BOOST_TEST_REQUIRE(whole.as_array().size() == 1u);
  const heddle::engine::Json& picture = whole.at(std::size_t{0});
  BOOST_TEST(picture.at("canvas_width").as_int64() == 50);
  BOOST_TEST(picture.at("canvas_height").as_int64() == 60);
  BOOST_TEST_REQUIRE(picture.at("people").as_array().size() == 1u);
  compare(picture.at("people").at(std::size_t{0}), "whole");
  const heddle::engine::Json boxed =
      found(nodes(R"([[{"x": 60, "y": 3, "width": 9, "height": 9}, {"x": 7.9, "y": 3, "width":
                  33.3, "height": 42}]])"));
  const heddle::engine::Json& people = boxed.at(std::size_t{0}).at("people");
  BOOST_TEST_REQUIRE(people.as_array().size() == 1u);
  compare(people.at(std::size_t{0}), "box");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto says = [&](const std::string& flow, const char* words) {
    const std::string text = engine_refusal([&] { found(flow); });
    BOOST_TEST(text.find(words) != std::string::npos, words << " is not in: " << text);
  };
  says(nodes("", "", "lotus"), "this is no SDPose");
  says(nodes(R"([{"x": 1, "y": 2}])"), "no finite number 'width'");
  std::vector<FileTensor> tensors = sdpose_tensors();
  for (FileTensor& tensor : tensors)
    if (tensor.name.starts_with("heatmap_head.final_layer.")) {
      tensor.bytes.resize(tensor.bytes.size() / std::size_t(tensor.shape[0]) * 17);
      tensor.shape[0] = 17;
    }
  write("diffusion_models/body", tensors);
  says(nodes("", "", "body"), "finds 17 points of a person");
  std::filesystem::remove(folder / "models/embeddings/lotus_conditioning.safetensors");
  says(nodes(""), "lotus_conditioning.safetensors");
}

BOOST_AUTO_TEST_CASE(what_a_plan_tells_is_what_a_run_makes) {
  heddle::Engine::Data data{options()};
  check_inference(data, nodes("", R"("class_type": "EmptyImage", "inputs":
      {"width": 20, "height": 24, "batch_size": 1, "color": 4000})"));
}

BOOST_AUTO_TEST_SUITE_END()
