// Nodes of pictures, masks, latents and lists against PyTorch, kornia, Pillow and NumPy
// (make_picture_goldens.py, make_list_goldens.py, make_composite_goldens.py, make_text_goldens.py,
// make_seedvr_goldens.py).
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_file.h"

using namespace heddle::test;
using heddle::engine::Json;

namespace {

// "IMAGE" or "IMAGE.1", an element of a list: the output, and the field of it.
std::pair<std::string, std::string> output_named(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (name == "LATENT") return {name, "samples"};
  return {name.substr(0, dot), dot == name.npos ? "" : name.substr(dot + 1)};
}

struct Pictures {
  explicit Pictures(const std::string& name)
      : path(tests_folder() / ("plugins/nodes/" + name + "_goldens.safetensors")), goldens(path) {}

  std::filesystem::path path;
  TensorFile goldens;
  TemporaryFolder folder;
  heddle::Engine engine{options()};

  heddle::EngineOptions options() const {
    heddle::EngineOptions options = engine_options();
    options.output_dir = folder.path();
    return options;
  }

  // What makes the tensor "in.NAME": a mask has three axes, a latent five or a name of its own.
  std::string given(const std::string& name) const {
    const std::size_t rank = goldens.at("in." + name).shape.size();
    const std::string type = name.starts_with("latent") ? "latent" : rank == 3 ? "mask" : "image";
    return R"({"class_type": "test.)" + type + R"(", "inputs": {"path": ")" + path.string() +
           R"(", "name": "in.)" + name + "\"}}";
  }

  std::string flow(const Json& record) const {
    std::string nodes = R"({"out": {"class_type": ")" + record.at("class").as_string() +
                        R"(", "inputs": )" + heddle::engine::write_json(record.at("inputs")) + "}";
    for (const auto& more : record.at("more").members())
      nodes += ", \"" + more.key + "\": " + heddle::engine::write_json(more.value);
    const std::string used = heddle::engine::write_json(record);
    for (const auto& [name, entry] : goldens.entries()) {
      if (!name.starts_with("in.")) continue;
      const std::string id = name.substr(3);
      if (used.find("[\"" + id + "\",0]") != std::string::npos)
        nodes += ", \"" + id + "\": " + given(id);
    }
    std::set<std::string> names;
    for (const Json& output : record.at("outputs").as_array())
      names.insert(output_named(output.at(std::size_t{0}).as_string()).first);
    const std::size_t outputs = names.size();
    for (std::size_t i = 0; i < outputs; ++i)
      nodes += ", \"look" + std::to_string(i) +
               R"(": {"class_type": "test.look", "inputs": {"value": ["out", )" +
               std::to_string(i) + "]}}";
    return nodes + "}";
  }

  heddle::Results run(const std::string& text, std::vector<std::string> keep) {
    return engine.start(engine.parse(text), {{}, std::move(keep)}).wait();
  }
};

double greatest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::isnan(a[i]) ? INFINITY : std::fabs(double(a[i]) - double(b[i])));
  return most;
}

void check_cases(const std::string& set, std::size_t count) {
  Pictures pictures(set);
  const Json cases = heddle::engine::parse_json(
      read_text(tests_folder() / ("plugins/nodes/" + set + "_cases.json")), set);
  for (const Json& record : cases.as_array()) {
    std::set<std::string> wanted;
    for (const Json& output : record.at("outputs").as_array())
      wanted.insert("out." + output_named(output.at(std::size_t{0}).as_string()).first);
    const std::vector<std::string> keep(wanted.begin(), wanted.end());
    BOOST_TEST_CONTEXT(heddle::engine::write_json(record)) {
      const heddle::Results results = pictures.run(pictures.flow(record), keep);
      for (const Json& output : record.at("outputs").as_array()) {
        const auto [name, field] = output_named(output.at(std::size_t{0}).as_string());
        const std::string golden = output.at(std::size_t{1}).as_string();
        BOOST_TEST((results.shape("out." + name, field) == pictures.goldens.at(golden).shape));
        const double difference = greatest_difference(results.floats("out." + name, field),
                                                      pictures.goldens.floats(golden));
        BOOST_TEST(difference <= output.at(std::size_t{2}).as_double());
      }
    }
  }
  BOOST_TEST(cases.as_array().size() == count);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(picture_nodes)

BOOST_AUTO_TEST_CASE(nodes_make_what_pytorch_kornia_and_pillow_make) {
  check_cases("picture", 158);
}

BOOST_AUTO_TEST_CASE(nodes_of_lists_make_what_pytorch_pillow_and_numpy_make) {
  check_cases("list", 56);
}

BOOST_AUTO_TEST_CASE(seedvr_nodes_without_a_model_make_what_pytorch_makes) {
  check_cases("seedvr", 28);
}

BOOST_AUTO_TEST_CASE(layers_and_boxes_make_what_pillow_numpy_and_pytorch_make) {
  check_cases("composite", 64);
}

BOOST_AUTO_TEST_CASE(texts_and_boxes_are_drawn_as_pillow_does) { check_cases("text", 15); }

BOOST_AUTO_TEST_CASE(boxes_of_the_editor_become_pixels_and_elements) {
  Pictures pictures("text");
  const std::string drawn =
      R"([{"x": 6, "y": 6, "width": 44, "height": 30, "metadata": {"type": "obj", "palette": ["#ff8000", "", "#123"]}},
          {"x": 108, "y": 76, "width": -56, "height": -48, "metadata": {"type": "text", "text": "Hi", "desc": "red"}}])";
  // What PreviewAny shows of the boxes and of the elements.
  const auto made = [&](const std::string& more) {
    const heddle::Results results = pictures.run(
        R"({"out": {"class_type": "CreateBoundingBoxes", "inputs": {"width": 112, "height": 80, "editor_state": {"__value__": )" +
            drawn + "}" + more + R"(}},
            "given": {"class_type": "PrimitiveString", "inputs": {"value": "{\"type\": \"obj\", \"bbox\": [450, 54, 75, 446]}"}},
            "a": {"class_type": "PreviewAny", "inputs": {"source": ["out", 1]}},
            "b": {"class_type": "PreviewAny", "inputs": {"source": ["out", 2]}}})",
        {});
    const Json ui = heddle::engine::parse_json(results.ui(), "ui");
    const auto shown = [&](const char* node) {
      const std::string text = ui.at(node).at("text").at(std::size_t{0}).as_string();
      return heddle::engine::write_json(heddle::engine::parse_json(text, node));
    };
    return std::pair(shown("a"), shown("b"));
  };
  const std::pair<std::string, std::string> own = made("");
  BOOST_TEST(own.first ==
             R"([[{"x":6,"y":6,"width":44,"height":30},{"x":52,"y":28,"width":56,"height":48}]])");
  BOOST_TEST(
      own.second ==
      R"([{"type":"obj","bbox":[75,54,450,446],"desc":"","color_palette":["#FF8000","#123"]},)"
      R"({"type":"text","bbox":[350,464,950,964],"text":"Hi","desc":"red"}])");
  const std::pair<std::string, std::string> linked = made(R"(, "bboxes": ["given", 0])");
  BOOST_TEST(linked.first == R"([[{"x":6,"y":6,"width":44,"height":30}]])");
  // The editor began with these: what was drawn since holds.
  const std::string seen =
      R"(, "bboxes": ["given", 0], "last_incoming": {"__value__": [{"x": 6.0, "y": 6, "width": 44, "height": 30,
          "metadata": {"palette": [], "type": "obj", "text": "", "desc": ""}}]})";
  BOOST_TEST((made(seen) == own));
}

// By each rule of ResizeImageMaskNode.
BOOST_AUTO_TEST_CASE(sizes_of_resized_pictures_are_told_before_a_run) {
  const char* const rules[] = {
      R"("scale dimensions", "resize_type.width": 24, "resize_type.height": 0, "resize_type.crop": "disabled")",
      R"("scale dimensions", "resize_type.width": 24, "resize_type.height": 16, "resize_type.crop": "center")",
      R"("scale dimensions", "resize_type.width": 0, "resize_type.height": 0, "resize_type.crop": "center")",
      R"("scale by multiplier", "resize_type.multiplier": 1.3)",
      R"("scale longer dimension", "resize_type.longer_size": 64)",
      R"("scale shorter dimension", "resize_type.shorter_size": 17)",
      R"("scale width", "resize_type.width": 33)",
      R"("scale height", "resize_type.height": 33)",
      R"("scale total pixels", "resize_type.megapixels": 0.01, "resize_type.multiple": 8)",
      R"("match size", "resize_type.match": ["mask", 0], "resize_type.crop": "center")",
      R"("match size", "resize_type.match": ["image", 0], "resize_type.crop": "disabled")",
      R"("scale to multiple", "resize_type.multiple": 7)",
      R"("scale to multiple", "resize_type.multiple": 1)"};
  for (const char* const rule : rules)
    for (const char* const given : {"image", "mask"}) {
      const std::string flow = heddle::engine::cat(
          R"({"image": {"class_type": "EmptyImage", "inputs": {"width": 45, "height": 30, "batch_size": 2,
            "color": 255}}, "mask": {"class_type": "SolidMask", "inputs": {"value": 0.5, "width": 20,
            "height": 50}}, "out": {"class_type": "ResizeImageMaskNode", "inputs": {"input": [")",
          given, R"(", 0], "scale_method": "area", "resize_type": )", rule,
          R"(}}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
      BOOST_TEST_CONTEXT(given << " by " << rule) {
        heddle::Engine::Data engine(engine_options());
        const Checked checked = infer_and_run(engine, flow);
        BOOST_TEST(!checked.made.outputs.at("out.resized").empty());
        BOOST_TEST(checked.inferred.outputs.at("out.resized") ==
                   checked.made.outputs.at("out.resized"));
      }
    }
}

// What is left out has its default in a run, and what is linked comes later.
BOOST_AUTO_TEST_CASE(sizes_of_resized_pictures_that_are_not_given_are_not_told) {
  heddle::Engine::Data engine(engine_options());
  const Checked checked = infer_and_run(
      engine,
      R"({"image": {"class_type": "EmptyImage", "inputs": {"width": 45, "height": 30, "batch_size": 1,
        "color": 255}}, "out": {"class_type": "ResizeImageMaskNode", "inputs": {"input": ["image", 0],
        "scale_method": "area", "resize_type": "scale width"}},
        "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  BOOST_TEST(checked.inferred.outputs.at("out.resized") == "{}");
  BOOST_TEST(checked.made.outputs.at("out.resized") != "{}");
}

BOOST_AUTO_TEST_SUITE_END()
