// SAM3_Detect with a small random SAM 3.1 out of one checkpoint, from texts, points and boxes to
// masks and boxes, against ComfyUI's steps around transformers' models
// (../goldens/make_sam3_node_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>

#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/seeded_weights.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kBoxTolerance = 1e-4;  // of pixels, and of scores
constexpr const char* kObjectBias =
    "tracker.model.interactive_sam_mask_decoder.pred_obj_score_head.layers.2.bias";

struct DetectFixture {
  TemporaryFolder folder;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/sam3_nodes/expected.safetensors";
  TensorFile expected{golden};
  heddle::Engine engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    const std::filesystem::path path = folder / "models/checkpoints/sam3.safetensors";
    if (std::filesystem::exists(path)) return options;
    std::vector<FileTensor> tensors = seeded_model("checkpoint", false, "sam3_nodes");
    for (FileTensor& tensor : tensors)
      if (tensor.name == kObjectBias) {  // there are objects
        const float sees = 3;
        std::memcpy(tensor.bytes.data(), &sees, sizeof sees);
      }
    std::filesystem::create_directories(folder / "models/checkpoints");
    write_safetensors(path, tensors);
    return options;
  }

  // keys: of the node that detects.
  std::string nodes(const std::string& text, const std::string& inputs,
                    const std::string& keys = "") const {
    return R"({"file": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sam3.safetensors"}},
            "text": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["file", 1], "text": ")" +
           text + R"("}},
            "pictures": {"class_type": "test.image", "inputs": {"path": ")" +
           golden.string() + R"(", "name": "pictures"}},
            "detect": {)" +
           keys +
           R"("class_type": "SAM3_Detect", "inputs": {"model": ["file", 0], "image": ["pictures", 0], )" +
           (text.empty() ? "" : R"("conditioning": ["text", 0], )") + inputs + R"(}},
            "look": {"class_type": "test.look", "inputs": {"value": ["detect", 0]}},
            "show": {"class_type": "PreviewAny", "inputs": {"source": ["detect", 1]}}})";
  }
  static std::vector<float> masks_by(heddle::Engine& engine, const std::string& flow) {
    return engine.start(engine.parse(flow), {{}, {"detect.masks"}}).wait().floats("detect.masks");
  }
  heddle::Results run(const std::string& text, const std::string& inputs) {
    return engine.start(engine.parse(nodes(text, inputs)), {{}, {"detect.masks"}}).wait();
  }

  // The boxes of all pictures, x, y, width, height and score of each.
  static std::vector<std::vector<double>> boxes_of(const heddle::Results& results) {
    const heddle::engine::Json shown = heddle::engine::parse_json(results.ui(), "ui");
    const std::string text = shown.at("show").at("text").at(std::size_t{0}).as_string();
    std::vector<std::vector<double>> boxes;
    const heddle::engine::Json pictures = heddle::engine::parse_json(text, "boxes");
    for (const heddle::engine::Json& picture : pictures.as_array()) {
      boxes.emplace_back();
      for (const heddle::engine::Json& box : picture.as_array())
        for (const char* key : {"x", "y", "width", "height", "score"})
          boxes.back().push_back(box.at(key).as_double());
    }
    return boxes;
  }

  void compare(const std::string& name, const std::string& text, const std::string& inputs) {
    const heddle::Results made = run(text, inputs);
    const auto& masks = expected.at(name + ".masks");
    BOOST_TEST(made.shape("detect.masks") == masks.shape, boost::test_tools::per_element());
    const std::vector<float> found = made.floats("detect.masks");
    std::size_t others = 0;
    BOOST_TEST_REQUIRE(found.size() == masks.bytes.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      others += found[i] != float(static_cast<unsigned char>(masks.bytes[i])) ? 1 : 0;
    BOOST_TEST_MESSAGE(name << ": " << others << " of " << found.size() << " pixels differ");
    BOOST_TEST(others == 0u, name);
    std::vector<double> all;
    const std::vector<std::int32_t> counts = expected.integers(name + ".counts");
    const std::vector<std::vector<double>> boxes = boxes_of(made);
    BOOST_TEST_REQUIRE(boxes.size() == counts.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      BOOST_TEST(boxes[i].size() == 5 * std::size_t(counts[i]), name);
      all.insert(all.end(), boxes[i].begin(), boxes[i].end());
    }
    const std::vector<float> wanted = expected.floats(name + ".boxes");
    BOOST_TEST_REQUIRE(all.size() == wanted.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      BOOST_TEST(std::abs(all[i] - wanted[i]) < kBoxTolerance, name << ": " << all[i]);
  }
  std::string refusal(const std::string& text, const std::string& inputs) {
    return engine_refusal([&] { run(text, inputs); });
  }
};

std::string detect_inputs(double threshold, int iterations, bool apart,
                          const std::string& more = "") {
  return R"("threshold": )" + std::to_string(threshold) + R"(, "refine_iterations": )" +
         std::to_string(iterations) + R"(, "individual_masks": )" + (apart ? "true" : "false") +
         more;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(sam3_detect, DetectFixture)

BOOST_AUTO_TEST_CASE(things_that_texts_name_are_those_of_comfyui) {
  compare("cat", "cat", detect_inputs(0.9, 2, false));
  compare("several", "photo, (cat) : 3", detect_inputs(0.8955, 1, true));
  compare("coarse", "cat:2", detect_inputs(0.3, 0, false));
  compare("nothing", "cat", detect_inputs(1, 2, false));
}

BOOST_AUTO_TEST_CASE(masks_of_points_and_boxes_are_those_of_comfyui) {
  compare("point", "",
          detect_inputs(0.5, 2, false, R"(, "positive_coords": "[{\"x\": 40, \"y\": 30}]")"));
  compare("points", "",
          detect_inputs(0.5, 1, false,
                        R"(, "positive_coords": "[{\"x\": 40, \"y\": 30}]",
                           "negative_coords": "[{\"x\": 90.5, \"y\": 60}]")"));
  compare("boxes", "",
          detect_inputs(0.5, 2, true,
                        R"(, "bboxes": {"__value__": [
                              {"x": 10, "y": 20, "width": 50, "height": 40},
                              {"x": 60, "y": 5, "width": 45.5, "height": 70}]})"));
}

BOOST_AUTO_TEST_CASE(without_anything_to_look_for_masks_are_empty) {
  const heddle::Results made = run("", detect_inputs(0.5, 2, false));
  const std::vector<float> masks = made.floats("detect.masks");
  BOOST_TEST(masks.size() == 2u * 90 * 120);
  BOOST_TEST(std::ranges::count(masks, 0.0f) == std::ptrdiff_t(masks.size()));
  BOOST_TEST(run("", detect_inputs(0.5, 2, true)).floats("detect.masks").empty());
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto says = [&](const std::string& text, const std::string& more, const char* word) {
    const std::string said = refusal(text, detect_inputs(0.5, 1, false, more));
    BOOST_TEST(said.find(word) != std::string::npos, word << " is not in: " << said);
  };
  const std::string box = R"({"__value__": [{"x": 1, "y": 2, "width": 3, "height": 4}]})";
  says("cat", R"(, "bboxes": )" + box, "boxes that show beside a text");
  says("cat:1.2.3", "", "is no number");
  says("", R"(, "positive_coords": "{}")", "no JSON list of points");
  says("", R"(, "positive_coords": "[{\"x\": 1}]")", "no finite number 'y'");
  says("", R"(, "bboxes": {"__value__": [{"x": 1, "y": 2}]})", "no finite number 'width'");
}

// Where something is found in each picture, what a plan tells of is what a run calls and makes.
BOOST_AUTO_TEST_CASE(what_a_plan_tells_is_what_a_run_makes) {
  const auto check = [&](const std::string& text, int iterations) {
    std::string flow = nodes(text, detect_inputs(0.3, iterations, false));
    const std::size_t begin = flow.find(R"("pictures": {)"), end = flow.find("}}", begin) + 2;
    flow.replace(begin, end - begin, R"("pictures": {"class_type": "EmptyImage",
        "inputs": {"width": 40, "height": 24, "batch_size": 2, "color": 4000}})");
    heddle::Engine::Data data{options()};
    check_inference(data, flow);
  };
  check("cat", 2);
  check("photo, cat:1", 1);
  check("cat", 0);
}

BOOST_AUTO_TEST_CASE(divided_by_layers_masks_have_the_same_bytes) {
  const std::string inputs = detect_inputs(0.3, 1, false);
  const std::vector<float> whole = run("cat", inputs).floats("detect.masks");
  heddle::EngineOptions two = options();
  two.devices = {"cpu:0", "cpu:1"};
  heddle::Engine divided{two};
  const std::string keys = R"("parallel": "layers", "device": "cpu:0,cpu:1", )";
  BOOST_TEST((masks_by(divided, nodes("cat", inputs, keys)) == whole));
}

// Down to budgets that are too little for any way to run it.
BOOST_AUTO_TEST_CASE(in_less_memory_masks_have_the_same_bytes) {
  const std::string inputs = detect_inputs(0.3, 1, false);
  const std::vector<float> whole = run("cat", inputs).floats("detect.masks");
  int done = 0;
  for (std::uint64_t budget = 64 << 20; budget > 0; budget /= 2) {
    heddle::EngineOptions small = options();
    small.plugin_dirs.push_back(HEDDLE_FAKE_DEVICE_DIR);
    small.devices = {"fake:0"};
    small.compute = {{"fake", "f32"}};
    small.budgets["fake:0"] = budget;
    heddle::Engine narrow{small};
    try {
      BOOST_TEST((masks_by(narrow, nodes("cat", inputs)) == whole), budget);
    } catch (const heddle::EngineError&) {
      break;
    }
    ++done;
  }
  BOOST_TEST(done > 1);
}

BOOST_AUTO_TEST_SUITE_END()
