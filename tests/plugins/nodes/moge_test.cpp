// LoadMoGeModel, MoGeInference, MoGeRender and MoGeGeometryToFOV with small random models, from
// pictures to points, cameras and what is drawn of them, against PyTorch and SciPy
// (../goldens/make_moge_goldens.py).
#include <algorithm>
#include <cmath>
#include <numbers>

#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"
#include "tests/support/moge_model.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::test;

namespace {

constexpr double kMogeNodeTolerance = 1e-4;
constexpr double kLeastDecibels = 70;

struct MogeNodesFixture {
  TemporaryFolder folder;
  const std::filesystem::path golden = tests_folder() / "plugins/goldens/moge/expected.safetensors";
  TensorFile expected{golden};
  heddle::Engine engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.compute[test_device_kind()] = "f32";
    options.model_dirs.push_back(folder / "models");
    const std::filesystem::path models = folder / "models/geometry_estimation";
    if (std::filesystem::exists(models)) return options;
    std::filesystem::create_directories(models);
    for (const char* model : {"first", "second", "normed"})
      write_safetensors(models / cat(model, ".safetensors"), moge_tensors(model));
    return options;
  }

  struct Asked {
    std::string model, pictures = "pictures", output = "mask";
    int level = 0, batch = 4;
    double fov = 0;
    bool projects = true, masks = true;
    std::string keys = "";  // of the node that calls the model
  };
  std::string nodes(const Asked& a) const {
    const auto text = [](bool is) { return is ? "true" : "false"; };
    return cat(R"({"file": {"class_type": "LoadMoGeModel", "inputs": {"model_name": ")", a.model,
               R"(.safetensors"}}, "pictures": {"class_type": "test.image", "inputs": {"path": ")",
               golden.string(), R"(", "name": ")", a.pictures, R"("}}, "infer": {)", a.keys,
               R"("class_type": "MoGeInference", "inputs": {"moge_model": ["file", 0],
               "image": ["pictures", 0], "resolution_level": )",
               a.level, R"(, "fov_x_degrees": )", a.fov, R"(, "batch_size": )", a.batch,
               R"(, "force_projection": )", text(a.projects), R"(, "apply_mask": )", text(a.masks),
               R"(}}, "draw": {"class_type": "MoGeRender", "inputs": {"moge_geometry": ["infer", 0],
               "output": ")",
               a.output,
               R"("}}, "look": {"class_type": "test.look", "inputs": {"value": ["draw", 0]}},
               "fov": {"class_type": "MoGeGeometryToFOV", "inputs": {"moge_geometry": ["infer", 0],
               "axis": "horizontal", "unit": "degrees"}},
               "show": {"class_type": "PreviewAny", "inputs": {"source": ["fov", 0]}},
               "focal": {"class_type": "PreviewAny", "inputs": {"source": ["fov", 1]}}})");
  }
  heddle::Results run(const Asked& asked) {
    return engine.start(engine.parse(nodes(asked)), {{}, {"infer.moge_geometry", "draw.IMAGE"}})
        .wait();
  }

  // Numbers of both that are not finite are at the same places.
  void compare(const heddle::Results& made, const std::string& name, const std::string& field) {
    std::vector<float> found = made.floats("infer.moge_geometry", field),
                       wanted = expected.floats(name + "." + field);
    BOOST_TEST_REQUIRE(found.size() == wanted.size());
    std::size_t others = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      others += std::isfinite(found[i]) != std::isfinite(wanted[i]);
      if (!std::isfinite(found[i]) || !std::isfinite(wanted[i])) found[i] = wanted[i] = 0;
    }
    BOOST_TEST(others == 0u, name << "." << field << ": " << others << " are hidden otherwise");
    const double error = relative_error(found, wanted);
    BOOST_TEST_MESSAGE(name << "." << field << ": relative error " << error);
    BOOST_TEST(error < kMogeNodeTolerance, name << "." << field << ": relative error " << error);
  }
  void compare_drawn(const heddle::Results& made, const std::string& name) {
    const std::vector<float> found = made.floats("draw.IMAGE"), wanted = expected.floats(name);
    BOOST_TEST_REQUIRE(found.size() == wanted.size());
    double squares = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      squares += std::pow(double(found[i]) - wanted[i], 2);
    const double decibels = -10 * std::log10(squares / double(found.size()) + 1e-20);
    BOOST_TEST_MESSAGE(name << ": " << decibels << " dB");
    BOOST_TEST(decibels > kLeastDecibels, name << ": " << decibels << " dB");
  }
  void compare_all(const Asked& asked, const std::string& name, bool has_normal) {
    const heddle::Results made = run(asked);
    for (const char* field : {"points", "depth", "intrinsics"}) compare(made, name, field);
    if (has_normal) compare(made, name, "normal");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(moge_nodes, MogeNodesFixture)

BOOST_AUTO_TEST_CASE(what_is_found_in_pictures_equals_pytorch) {
  compare_all({.model = "first"}, "first", false);
  compare_all({.model = "second"}, "second", true);
  compare_all({.model = "second", .level = 1, .fov = 55.5, .projects = false, .masks = false},
              "told", true);
  compare_all({.model = "normed"}, "normed", false);
  compare_all({.model = "second", .pictures = "tall"}, "tall_second", true);
  compare_all({.model = "first", .pictures = "tall"}, "tall_first", false);
}

BOOST_AUTO_TEST_CASE(what_is_drawn_equals_pytorch) {
  const auto draw = [&](const std::string& model, const std::string& output) {
    compare_drawn(run({.model = model, .output = output}), cat(model, ".render.", output));
  };
  for (const char* output : {"depth", "depth_colored", "normal_opengl", "normal_directx", "mask"})
    draw("second", output);
  for (const char* output : {"depth", "normal_directx", "mask"}) draw("first", output);
  draw("normed", "normal_opengl");
}

BOOST_AUTO_TEST_CASE(fields_of_view_are_those_of_the_camera) {
  const std::vector<float> lens = expected.floats("tall_second.intrinsics");
  const double across = 0.5 / lens[0], down = 0.5 / lens[4];
  const auto told = [&](const char* axis, const char* unit) {
    std::string flow = nodes({.model = "second", .pictures = "tall"});
    const std::string old = R"("axis": "horizontal", "unit": "degrees")";
    flow.replace(flow.find(old), old.size(),
                 cat(R"("axis": ")", axis, R"(", "unit": ")", unit, "\""));
    const heddle::engine::Json shown =
        heddle::engine::parse_json(engine.start(engine.parse(flow)).wait().ui(), "ui");
    const auto number = [&](const char* node) {
      return std::stod(shown.at(node).at("text").at(std::size_t{0}).as_string());
    };
    const double high = 30;
    BOOST_TEST(std::abs(number("focal") / (lens[4] * high) - 1) < kMogeNodeTolerance);
    return number("show");
  };
  const auto near = [](double found, double wanted) {
    BOOST_TEST(std::abs(found / wanted - 1) < kMogeNodeTolerance, found << " is not " << wanted);
  };
  constexpr double kDegrees = 180 / std::numbers::pi;
  near(told("horizontal", "radians"), 2 * std::atan(across));
  near(told("vertical", "degrees"), kDegrees * 2 * std::atan(down));
  near(told("diagonal", "degrees"), kDegrees * 2 * std::atan(std::hypot(across, down)));
}

BOOST_AUTO_TEST_CASE(pictures_of_a_call_are_no_matter) {
  const heddle::Results one = run({.model = "second", .batch = 1}),
                        all = run({.model = "second", .batch = 3});
  for (const char* field : {"points", "depth", "normal"})
    BOOST_TEST(one.floats("infer.moge_geometry", field) == all.floats("infer.moge_geometry", field),
               field);
}

BOOST_AUTO_TEST_CASE(what_a_plan_tells_is_what_a_run_makes) {
  heddle::Engine::Data data{options()};
  for (const char* model : {"first", "second", "normed"}) {
    std::string flow = nodes({.model = model, .output = "depth", .batch = 2});
    const std::size_t begin = flow.find(R"("pictures": {)"), end = flow.find("}}", begin) + 2;
    flow.replace(begin, end - begin, R"("pictures": {"class_type": "EmptyImage",
        "inputs": {"width": 40, "height": 24, "batch_size": 3, "color": 4000}})");
    check_inference(data, flow);
  }
}

BOOST_AUTO_TEST_CASE(divided_by_layers_points_have_the_same_bytes) {
  const Asked asked{.model = "second", .output = "normal_opengl"};
  const std::vector<float> whole = run(asked).floats("draw.IMAGE");
  heddle::EngineOptions two = options();
  two.devices = {"cpu:0", "cpu:1"};
  heddle::Engine divided{two};
  Asked apart = asked;
  apart.keys = R"("parallel": "layers", "device": "cpu:0,cpu:1", )";
  BOOST_TEST((divided.start(divided.parse(nodes(apart)), {{}, {"draw.IMAGE"}})
                  .wait()
                  .floats("draw.IMAGE") == whole));
}

// Down to budgets that are too little for any way to run it.
BOOST_AUTO_TEST_CASE(in_less_memory_points_have_the_same_bytes) {
  const Asked asked{.model = "normed", .output = "depth", .batch = 1};
  const std::vector<float> whole = run(asked).floats("draw.IMAGE");
  int done = 0;
  for (std::uint64_t budget = 256 << 20; budget > 0; budget /= 2) {
    heddle::EngineOptions small = options();
    small.plugin_dirs.push_back(HEDDLE_FAKE_DEVICE_DIR);
    small.devices = {"fake:0"};
    small.compute = {{"fake", "f32"}};
    small.budgets["fake:0"] = budget;
    heddle::Engine narrow{small};
    try {
      BOOST_TEST((narrow.start(narrow.parse(nodes(asked)), {{}, {"draw.IMAGE"}})
                      .wait()
                      .floats("draw.IMAGE") == whole),
                 budget);
    } catch (const heddle::EngineError&) {
      break;
    }
    ++done;
  }
  BOOST_TEST(done > 1);
}

BOOST_AUTO_TEST_CASE(what_is_no_moge_is_refused_before_a_run) {
  const auto says = [&](const std::vector<FileTensor>& tensors, const char* word) {
    write_safetensors(folder / "models/geometry_estimation/other.safetensors", tensors);
    heddle::Engine other{options()};
    const std::string said =
        engine_refusal([&] { other.plan(other.parse(nodes({.model = "other"}))); });
    BOOST_TEST(said.find(word) != std::string::npos, word << " is not in: " << said);
  };
  says(seeded_model("siglip", false, "redux"), "CLIPVisionLoader");
  std::vector<FileTensor> third = moge_tensors("second");
  third.push_back(seeded_tensor("refiner.input_proj.weight", {32, 3}));
  says(third, "MoGe 3");
  std::vector<FileTensor> damaged = moge_tensors("second");
  for (FileTensor& tensor : damaged)
    if (tensor.name == "points_head.resamplers.0.1.weight")
      tensor = seeded_tensor(tensor.name, {24, 24, 1, 1});
  says(damaged, "points_head.resamplers.0.1.weight");
}

BOOST_AUTO_TEST_SUITE_END()
