// RTDETR_detect with a small random RT-DETR 4, from pictures to boxes, against ComfyUI's steps in
// PyTorch (../goldens/make_rtdetr_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstring>

#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/rtdetr_model.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kPixels = 1e-3, kScores = 1e-5;
constexpr double kAbove = 0.855;  // as the goldens have it

struct FoundThing {
  std::string label;
  double x, y, width, height, score;
};
using FoundThings = std::vector<FoundThing>;

struct RtdetrNodeFixture {
  TemporaryFolder folder;
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/rtdetr/expected.safetensors";
  TensorFile expected{golden};
  heddle::Engine engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    const std::filesystem::path path = folder / "models/diffusion_models/rtdetr.safetensors";
    if (std::filesystem::exists(path)) return options;
    std::filesystem::create_directories(path.parent_path());
    write_safetensors(path, rtdetr_tensors());
    return options;
  }

  struct Asked {
    double threshold = kAbove;
    std::string kind = "all";
    int most = 100;
    std::string keys = "";  // of the node that detects
    std::string pictures = "", name = "first";
  };
  std::string nodes(const Asked& asked) const {
    return cat(R"({"file": {"class_type": "UNETLoader", "inputs": {"unet_name":
               "rtdetr.safetensors", "weight_dtype": "default"}}, "pictures": {)",
               asked.pictures.empty() ? cat(R"("class_type": "test.image", "inputs": {"path": ")",
                                            golden.string(), R"(", "name": ")", asked.name, R"("})")
                                      : asked.pictures,
               R"(}, "detect": {)", asked.keys,
               R"("class_type": "RTDETR_detect", "inputs": {"model": ["file", 0],
               "image": ["pictures", 0], "threshold": )",
               asked.threshold, R"(, "class_name": ")", asked.kind, R"(", "max_detections": )",
               asked.most, R"(}}, "show": {"class_type": "PreviewAny", "inputs":
               {"source": ["detect", 0]}}})");
  }
  static std::string text_by(heddle::Engine& engine, const std::string& flow) {
    const heddle::Results made = engine.start(engine.parse(flow), {{}, {}}).wait();
    return heddle::engine::parse_json(made.ui(), "ui")
        .at("show")
        .at("text")
        .at(std::size_t{0})
        .as_string();
  }
  std::vector<FoundThings> found(const Asked& asked) {
    std::vector<FoundThings> all;
    const heddle::engine::Json lists =
        heddle::engine::parse_json(text_by(engine, nodes(asked)), "boxes");
    for (const heddle::engine::Json& list : lists.as_array()) {
      all.emplace_back();
      for (const heddle::engine::Json& box : list.as_array()) {
        const auto number = [&](const char* key) { return box.at(key).as_double(); };
        all.back().push_back({box.at("label").as_string(), number("x"), number("y"),
                              number("width"), number("height"), number("score")});
      }
    }
    return all;
  }
  // How many of what was wanted of a picture were found. Equal scores may change their order.
  std::size_t compare(const FoundThings& made, int picture,
                      const std::vector<std::string>& names) const {
    const std::string at = cat("found.", picture, ".");
    const std::vector<float> boxes = expected.floats(at + "boxes"),
                             scores = expected.floats(at + "scores");
    const std::vector<std::int32_t> labels = expected.integers(at + "labels");
    std::size_t same = 0;
    for (std::size_t i = 0; i < scores.size(); ++i)
      same += std::ranges::any_of(made, [&](const FoundThing& one) {
        const double sides[] = {one.x, one.y, one.width, one.height};
        bool is_it =
            one.label == names[std::size_t(labels[i])] && std::abs(one.score - scores[i]) < kScores;
        for (std::size_t side = 0; side < 4; ++side)
          is_it = is_it && std::abs(sides[side] - boxes[4 * i + side]) < kPixels;
        return is_it;
      });
    return same;
  }
};

// The kinds of COCO, by their numbers.
std::vector<std::string> names_of_kinds(const heddle::Engine& engine) {
  const heddle::engine::Json info =
      heddle::engine::parse_json(engine.object_info("RTDETR_detect"), "node");
  const heddle::engine::Json& port =
      info.at("RTDETR_detect").at("input").at("required").at("class_name");
  std::vector<std::string> names;
  for (const heddle::engine::Json& name : port.at(std::size_t{1}).at("options").as_array())
    if (name.as_string() != "all") names.push_back(name.as_string());
  return names;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(rtdetr_nodes, RtdetrNodeFixture)

BOOST_AUTO_TEST_CASE(things_in_pictures_are_those_of_comfyui) {
  const std::vector<std::string> names = names_of_kinds(engine);
  BOOST_TEST_REQUIRE(names.size() == 80u);
  const std::vector<FoundThings> made = found({.name = "pictures"});
  BOOST_TEST_REQUIRE(made.size() == 2u);
  for (int picture = 0; picture < 2; ++picture) {
    const FoundThings& things = made[std::size_t(picture)];
    const std::size_t wanted = expected.floats(cat("found.", picture, ".scores")).size();
    BOOST_TEST(things.size() == wanted);
    BOOST_TEST(compare(things, picture, names) == wanted);
    BOOST_TEST(std::ranges::is_sorted(things, std::ranges::greater{}, &FoundThing::score));
  }
}

BOOST_AUTO_TEST_CASE(kinds_and_numbers_are_chosen) {
  const FoundThings all = found({})[0];
  const std::string kind = all[0].label;
  const auto of_kind = std::ranges::count(all, kind, &FoundThing::label);
  BOOST_TEST_REQUIRE((of_kind > 1 && of_kind < std::ptrdiff_t(all.size())));
  const FoundThings chosen = found({.kind = kind})[0];
  BOOST_TEST(std::ptrdiff_t(chosen.size()) == of_kind);
  for (const FoundThing& thing : chosen) BOOST_TEST(thing.label == kind);
  const FoundThings best = found({.most = 3})[0];
  BOOST_TEST_REQUIRE(best.size() == 3u);
  BOOST_TEST(best[2].score == all[2].score);
  BOOST_TEST(found({.most = -2})[0].size() == all.size() - 2);
  BOOST_TEST(found({.most = -300})[0].empty());
  BOOST_TEST(found({.threshold = -1, .most = 1000})[0].size() == 300u);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  std::vector<FileTensor> tensors = rtdetr_tensors();
  for (FileTensor& tensor : tensors)
    if (tensor.name.find("_score_head.") != std::string::npos) {
      tensor.bytes.resize(tensor.bytes.size() / 2);
      tensor.shape[0] /= 2;
    }
  write_safetensors(folder / "models/diffusion_models/half.safetensors", tensors);
  const auto says = [&](const char* from, const char* to, const char* words) {
    std::string flow = nodes({});
    const std::size_t at = flow.find(from);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    flow.replace(at, std::strlen(from), to);
    const std::string text = engine_refusal([&] { text_by(engine, flow); });
    BOOST_TEST(text.find(words) != std::string::npos, words << " is not in: " << text);
  };
  says("rtdetr.safetensors", "half.safetensors", "has 40 classes");
  says(R"("class_name": "all")", R"("class_name": "unicorn")", "unicorn");
}

BOOST_AUTO_TEST_CASE(what_a_plan_tells_is_what_a_run_makes) {
  heddle::Engine::Data data{options()};
  check_inference(data, nodes({.pictures = R"("class_type": "EmptyImage", "inputs":
      {"width": 40, "height": 24, "batch_size": 2, "color": 4000})"}));
}

BOOST_AUTO_TEST_CASE(divided_by_layers_boxes_are_the_same) {
  const std::string whole = text_by(engine, nodes({}));
  heddle::EngineOptions two = options();
  two.devices = {"cpu:0", "cpu:1"};
  heddle::Engine divided{two};
  BOOST_TEST(text_by(divided, nodes({.keys = R"("parallel": "layers", "device":
             "cpu:0,cpu:1", )"})) == whole);
}

// Down to budgets that are too little for any way to run it.
BOOST_AUTO_TEST_CASE(in_less_memory_boxes_are_the_same) {
  const std::string whole = text_by(engine, nodes({}));
  int done = 0;
  for (std::uint64_t budget = 256 << 20; budget > 0; budget /= 4) {
    heddle::EngineOptions small = options();
    small.plugin_dirs.push_back(HEDDLE_FAKE_DEVICE_DIR);
    small.devices = {"fake:0"};
    small.compute = {{"fake", "f32"}};
    small.budgets["fake:0"] = budget;
    heddle::Engine narrow{small};
    try {
      BOOST_TEST(text_by(narrow, nodes({})) == whole, budget);
    } catch (const heddle::EngineError&) {
      break;
    }
    ++done;
  }
  BOOST_TEST(done > 1);
}

BOOST_AUTO_TEST_SUITE_END()
