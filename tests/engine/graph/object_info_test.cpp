// Our nodes, declared with the same ports, are described in the very words of ComfyUI's
// /object_info. The files are what ComfyUI 0.3.64 serves, without tooltips.
#include <boost/test/unit_test.hpp>

#include "engine/graph/catalog.h"
#include "tests/support/golden_files.h"
#include "tests/support/test_nodes.h"

namespace heddle::engine {
namespace {

using test::TestNode;

Json expected_info(const std::string& type) {
  return parse_json(test::read_text(test::tests_folder() / "golden/object_info" / (type + ".json")),
                    type);
}

void check_golden(const NodeType& type, const Catalog& catalog) {
  const Json expected = expected_info(std::string(type.name()));
  const Json info = object_info(type, catalog);
  BOOST_TEST((info == expected), write_json(info, 1) << "\nis not\n" << write_json(expected, 1));
}

Json info_of(TestNode& node, const std::string& plugin = "org.heddle.test") {
  const NodeType type(&node.desc, plugin, nullptr);
  return object_info(type, Catalog()).at(type.name());
}

const Json& options_of(const Json& info, std::string_view section, std::string_view input) {
  return info.at("input").at(section).at(input).at(std::size_t{1});
}

BOOST_AUTO_TEST_SUITE(object_info_)

BOOST_AUTO_TEST_CASE(a_loader_a_text_and_a_sink_are_described_as_comfyui_does) {
  Catalog catalog = test::test_catalog();
  for (const char* name : {"LoadImage", "CLIPTextEncode", "SaveImage"})
    check_golden(*catalog.find(name), catalog);
}

BOOST_AUTO_TEST_CASE(numbers_seeds_and_registered_choices_are_described_as_comfyui_does) {
  struct Named {
    std::uint32_t size;
    const char* name;
  };
  const Json golden = expected_info("KSampler");
  const Json& required = golden.at("KSampler").at("input").at("required");
  Catalog catalog;
  std::deque<Named> names;
  for (const char* input : {"sampler_name", "scheduler"}) {
    for (const Json& name : required.at(input).at(std::size_t{0}).as_array()) {
      names.push_back({sizeof(Named), name.as_string().c_str()});
      catalog.add(input, Extension{&names.back(), "org.heddle.test", nullptr});
    }
  }
  TestNode node("KSampler");
  node.titled("KSampler", "sampling")
      .in("model", "MODEL")
      .in("seed", "INT", test::seed_widget())
      .in("steps", "INT", test::int_widget(20, 1, 10000))
      .in("cfg", "FLOAT", test::float_widget(8, 0, 100, 0.1, 0.01))
      .in("sampler_name", "STRING", test::source_widget(HEDDLE_WIDGET_CHOICE, "sampler_name"))
      .in("scheduler", "STRING", test::source_widget(HEDDLE_WIDGET_CHOICE, "scheduler"))
      .in("positive", "CONDITIONING")
      .in("negative", "CONDITIONING")
      .in("latent_image", "LATENT")
      .in("denoise", "FLOAT", test::float_widget(1, 0, 1, 0.01))
      .out("LATENT");
  check_golden(NodeType(&node.desc, "org.heddle.test", nullptr), catalog);
}

BOOST_AUTO_TEST_CASE(files_are_listed_as_choices) {
  Catalog catalog = test::test_catalog();
  test::list_sample_files(catalog);
  const Json info = object_info(*catalog.find("LoadImage"), catalog);
  BOOST_TEST(write_json(info.at("LoadImage").at("input")) ==
             R"({"required":{"image":[["example.png"],{"image_upload":true}]}})");
}

BOOST_AUTO_TEST_CASE(a_combo_has_its_choices_among_the_options) {
  TestNode node("test.x");
  node.in("a", "COMBO", test::choice_widget(test::kClipDevices, "cpu"));
  BOOST_TEST(write_json(info_of(node).at("input").at("required").at("a")) ==
             R"(["COMBO",{"default":"cpu","multiselect":false,"options":["default","cpu"]}])");
}

BOOST_AUTO_TEST_CASE(optional_and_lazy_ports_are_marked) {
  TestNode node("test.x");
  node.in("a", "IMAGE", HEDDLE_PORT_LAZY)
      .in("b", "BOOLEAN", test::toggle_widget(true), HEDDLE_PORT_OPTIONAL)
      .in("c", "INT")
      .out("IMAGE", "pictures")
      .out("MASK");
  const Json info = info_of(node);
  BOOST_TEST(
      write_json(info.at("input")) ==
      R"({"required":{"a":["IMAGE",{"lazy":true}],"c":["INT",{"forceInput":true}]},"optional":{"b":["BOOLEAN",{"default":true}]}})");
  BOOST_TEST(write_json(info.at("input_order")) == R"({"required":["a","c"],"optional":["b"]})");
  BOOST_TEST(write_json(info.at("output_is_list")) == "[false,false]");
  BOOST_TEST(write_json(info.at("output_name")) == R"(["pictures","MASK"])");
  BOOST_TEST((info.find("output_tooltips") == nullptr));
  BOOST_TEST((info.find("deprecated") == nullptr));
}

BOOST_AUTO_TEST_CASE(documentation_becomes_description_and_tooltips) {
  TestNode node("test.x", HEDDLE_NODE_DEPRECATED | HEDDLE_NODE_EXPERIMENTAL);
  node.desc.doc = "Does it.";
  node.in("a", "INT", test::int_widget(1, 0, 0)).last_port().doc = "How often.";
  node.out("INT").last_port().doc = "The count.";
  node.out("MASK");
  const Json info = info_of(node);
  BOOST_TEST(info.at("description").as_string() == "Does it.");
  BOOST_TEST(write_json(options_of(info, "required", "a")) ==
             R"({"default":1,"tooltip":"How often."})");
  BOOST_TEST(write_json(info.at("output_tooltips")) == R"(["The count.",""])");
  BOOST_TEST(info.at("deprecated").as_bool());
  BOOST_TEST(info.at("experimental").as_bool());
}

BOOST_AUTO_TEST_CASE(the_extra_of_a_widget_is_merged_over_the_options) {
  TestNode node("test.x");
  heddle_widget widget = test::int_widget(1, 0, 8);
  widget.extra = R"({"display": "slider", "default": 2})";
  node.in("a", "INT", widget);
  BOOST_TEST(write_json(options_of(info_of(node), "required", "a")) ==
             R"({"default":2,"min":0,"max":8,"display":"slider"})");
}

BOOST_AUTO_TEST_CASE(a_null_of_the_extra_takes_an_option_out) {
  TestNode node("test.x");
  heddle_widget widget = test::int_widget(1, 0, 8);
  widget.extra = R"({"default": null, "step": 2})";
  node.in("a", "INT", widget);
  BOOST_TEST(write_json(options_of(info_of(node), "required", "a")) ==
             R"({"min":0,"max":8,"step":2})");
}

BOOST_AUTO_TEST_CASE(inputs_that_grow_may_have_options_without_a_widget) {
  TestNode node("test.x");
  heddle_widget widget{};
  widget.size = sizeof widget;
  widget.extra = R"({"template": {"min": 1}})";
  node.in("values", "COMFY_AUTOGROW_V3", widget, 0)
      .in("any", "COMFY_MATCHTYPE_V3", widget, HEDDLE_PORT_OPTIONAL);
  BOOST_TEST(
      write_json(info_of(node).at("input")) ==
      R"({"required":{"values":["COMFY_AUTOGROW_V3",{"template":{"min":1}}]},"optional":{"any":["COMFY_MATCHTYPE_V3",{"template":{"min":1}}]}})");
}

BOOST_AUTO_TEST_CASE(nodes_of_other_plugins_are_shown_as_custom_nodes) {
  TestNode node("test.x");
  node.desc.title = nullptr;
  node.desc.category = nullptr;
  node.desc.doc = nullptr;
  const Json info = info_of(node, "org.example.hello");
  BOOST_TEST(info.at("python_module").as_string() == "custom_nodes.org.example.hello");
  // As those of ComfyUI itself: front ends give them no badge.
  BOOST_TEST(info_of(node, "org.heddle.core").at("python_module").as_string() == "nodes");
  BOOST_TEST(info.at("display_name").as_string() == "test.x");
  BOOST_TEST(info.at("category").as_string() == "");
  BOOST_TEST(write_json(info.at("input")) == R"({"required":{}})");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
