// Subgraphs of the saved form, and the group nodes that came before them.
#include <boost/test/unit_test.hpp>

#include "tests/engine/graph/saved_form_fixture.h"

namespace heddle::engine {
namespace {

using test::convert_nodes;
using test::convert_saved;
using test::inputs_of;
using test::refusal_of_nodes;

// A subgraph "draw": image, steps and text go in; node 3 (Sample) reads image and steps, node 4
// (Text) reads text; the image of node 3 comes out.
const std::string kDraw = R"({"id": "draw", "name": "Draw", "version": 1,
  "inputNode": {"id": -10}, "outputNode": {"id": -20},
  "inputs": [{"name": "image", "type": "IMAGE", "linkIds": [1]},
             {"name": "steps", "type": "INT", "linkIds": [2]},
             {"name": "text", "type": "STRING", "linkIds": [3]}],
  "outputs": [{"name": "IMAGE", "type": "IMAGE", "linkIds": [4]}],
  "nodes": [
    {"id": 3, "type": "Sample", "widgets_values": [11, "fixed", 12, 2.5, "heun", false],
     "inputs": [{"name": "image", "type": "IMAGE", "link": 1},
                {"name": "steps", "type": "INT", "widget": {"name": "steps"}, "link": 2}],
     "outputs": [{"name": "IMAGE", "type": "IMAGE", "links": [4]}]},
    {"id": 4, "type": "Text", "widgets_values": ["inner // kept"],
     "inputs": [{"name": "text", "type": "STRING", "widget": {"name": "text"}, "link": 3}]}],
  "links": [
    {"id": 1, "origin_id": -10, "origin_slot": 0, "target_id": 3, "target_slot": 0},
    {"id": 2, "origin_id": -10, "origin_slot": 1, "target_id": 3, "target_slot": 1},
    {"id": 3, "origin_id": -10, "origin_slot": 2, "target_id": 4, "target_slot": 0},
    {"id": 4, "origin_id": 3, "origin_slot": 0, "target_id": -20, "target_slot": 0}]})";

std::string definitions(const std::string& subgraphs) {
  return R"(, "definitions": {"subgraphs": [)" + subgraphs + "]}";
}

// Node 7, an instance of "draw", and node 9, which saves what it gives.
Json drawn(const std::string& instance, const std::string& nodes = "",
           const std::string& links = R"([5, 7, 0, 9, 0, "IMAGE"])",
           const std::string& subgraphs = kDraw) {
  return convert_nodes(
      R"({"id": 7, "type": "draw", "outputs": [{"name": "IMAGE", "type": "IMAGE"}], )" + instance +
          R"(}, {"id": 9, "type": "SaveImage", "inputs": [
              {"name": "images", "type": "IMAGE", "link": 5}]})" +
          nodes,
      links, definitions(subgraphs));
}

std::string sample_with(const std::string& steps, const std::string& image = "") {
  return R"({"seed":11,"steps":)" + steps + R"(,"cfg":2.5,"sampler":"heun","tiled":false)" + image +
         "}";
}

BOOST_AUTO_TEST_SUITE(saved_subgraphs)

// Which inputs of an unknown class are widgets is read from the file: values of others keep their
// places.
BOOST_AUTO_TEST_CASE(values_promoted_of_an_unknown_class_stand_among_the_others) {
  std::string draw = kDraw;
  draw.replace(draw.find("\"type\": \"Sample\""), 16, "\"type\": \"Strange\"");
  const Json nodes = convert_saved(
      R"({"nodes": [{"id": 7, "type": "draw", "inputs": [], "widgets_values": [33, "outer"]}],
          "links": [])" +
          definitions(draw) + "}",
      UnknownClasses::keep);
  BOOST_TEST(nodes.at("7:3").at("inputs").at("steps").as_int64() == 33);
  BOOST_TEST(nodes.at("7:3").at("inputs").find("widgets_values[4]")->as_string() == "heun");
  BOOST_TEST(inputs_of(nodes, "7:4") == R"({"text":"outer"})");
}

BOOST_AUTO_TEST_CASE(an_unknown_class_inside_is_told_with_the_way_to_it) {
  std::string draw = kDraw;
  draw.replace(draw.find("\"type\": \"Sample\""), 16, "\"type\": \"Strange\"");
  const std::string said = refusal_of_nodes(
      R"({"id": 7, "type": "draw"}, {"id": 8, "type": "draw"})", "", definitions(draw));
  for (const char* node : {"node '7:3' (Strange): nobody knows this class",
                           "node '8:3' (Strange): nobody knows this class"})
    BOOST_TEST(said.find(node) != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(nodes_inside_have_joined_ids_and_outputs_are_theirs) {
  const Json nodes = drawn(R"("inputs": [])");
  BOOST_TEST(inputs_of(nodes, "7") == "gone");
  BOOST_TEST(inputs_of(nodes, "7:3") == sample_with("12"));
  BOOST_TEST(inputs_of(nodes, "9") == R"({"filename_prefix":"ComfyUI","images":["7:3",0]})");
}

BOOST_AUTO_TEST_CASE(an_instance_s_values_go_to_the_widgets_that_it_promotes) {
  // "image" is no widget; sockets that nothing is linked to may be left out, in any order.
  const Json nodes = drawn(R"("inputs": [{"name": "steps", "type": "INT", "link": null}],
                              "widgets_values": [40, "outer // kept"])");
  BOOST_TEST(inputs_of(nodes, "7:3") == sample_with("40"));
  BOOST_TEST(inputs_of(nodes, "7:4") == R"({"text":"outer // kept"})");
}

BOOST_AUTO_TEST_CASE(older_instances_name_their_widgets) {
  const std::string proxies = R"("properties": {"proxyWidgets": [["4", "text"], ["-1", "steps"],
      ["3", "cfg"], ["3", "$$canvas-image-preview"], ["3", "5: seed"], ["3", "sampler"]]}, )";
  const Json nodes = drawn(proxies + R"("widgets_values": ["t", 8, 1.5, null, 99, null])");
  BOOST_TEST(inputs_of(nodes, "7:4") == R"({"text":"t"})");
  BOOST_TEST(inputs_of(nodes, "7:3") ==
             R"({"seed":99,"steps":8,"cfg":1.5,"sampler":"heun","tiled":false})");
  BOOST_TEST(inputs_of(drawn(proxies + R"("widgets_values": [])"), "7:3") == sample_with("12"));
}

BOOST_AUTO_TEST_CASE(values_that_an_interface_could_not_place_are_kept) {
  const Json nodes = drawn(R"("properties": {"proxyWidgetErrorQuarantine": [
      {"originalEntry": ["-1", "steps"], "reason": "missingSourceNode", "hostValue": 77},
      {"originalEntry": ["-1", "nobody"], "reason": "missingSourceNode", "hostValue": 1}]})");
  BOOST_TEST(inputs_of(nodes, "7:3") == sample_with("77"));
}

BOOST_AUTO_TEST_CASE(a_link_from_outside_counts_before_values) {
  const Json nodes = drawn(
      R"("inputs": [{"name": "steps", "type": "INT", "link": 6},
                    {"name": "image", "type": "IMAGE", "link": 7}], "widgets_values": [40])",
      R"(, {"id": 1, "type": "Old"}, {"id": 2, "type": "Sample"})",
      R"([5, 7, 0, 9, 0, "IMAGE"], [6, 1, 0, 7, 0, "INT"], [7, 2, 0, 7, 1, "IMAGE"])");
  BOOST_TEST(inputs_of(nodes, "7:3") == sample_with(R"(["1",0])", R"(,"image":["2",0])"));
}

BOOST_AUTO_TEST_CASE(subgraphs_stand_in_each_other) {
  const std::string outer = R"({"id": "outer", "name": "Outer",
    "inputs": [{"name": "n", "type": "INT", "linkIds": [1]}],
    "outputs": [{"name": "IMAGE", "type": "IMAGE", "linkIds": [2]}],
    "nodes": [{"id": 20, "type": "draw", "inputs": [{"name": "steps", "type": "INT", "link": 1}],
               "widgets_values": [3, "middle"],
               "outputs": [{"name": "IMAGE", "type": "IMAGE", "links": [2]}]}],
    "links": [{"id": 1, "origin_id": -10, "origin_slot": 0, "target_id": 20, "target_slot": 0},
              {"id": 2, "origin_id": 20, "origin_slot": 0, "target_id": -20, "target_slot": 0}]})";
  const auto of = [&](const std::string& rest) {
    return convert_nodes(
        R"({"id": 30, "type": "outer")" + rest + R"(}, {"id": 9, "type": "SaveImage",
        "inputs": [{"name": "images", "type": "IMAGE", "link": 5}]})",
        R"([5, 30, 0, 9, 0, "IMAGE"])", definitions(kDraw + "," + outer));
  };
  BOOST_TEST(inputs_of(of(""), "30:20:3") == sample_with("3"));
  BOOST_TEST(inputs_of(of(""), "30:20:4") == R"({"text":"middle"})");
  BOOST_TEST(inputs_of(of(""), "9") == R"({"filename_prefix":"ComfyUI","images":["30:20:3",0]})");
  BOOST_TEST(inputs_of(of(R"(, "widgets_values": [50])"), "30:20:3") == sample_with("50"));
  // A widget of the instance inside, shown by the outer one.
  BOOST_TEST(inputs_of(of(R"(, "properties": {"proxyWidgets": [["20", "text"]]},
                            "widgets_values": ["shown"])"),
                       "30:20:4") == R"({"text":"shown"})");
}

BOOST_AUTO_TEST_CASE(a_muted_instance_is_gone_and_a_bypassed_one_passes_on) {
  const std::string source = R"(, {"id": 2, "type": "Sample"})";
  const std::string links = R"([5, 7, 0, 9, 0, "IMAGE"], [7, 2, 0, 7, 0, "IMAGE"])";
  const std::string linked = R"("inputs": [{"name": "image", "type": "IMAGE", "link": 7}])";
  for (const bool is_muted : {true, false}) {
    const Json nodes =
        drawn((is_muted ? R"("mode": 2, )" : R"("mode": 4, )") + linked, source, links);
    BOOST_TEST(inputs_of(nodes, "7:3") == "gone");
    BOOST_TEST(inputs_of(nodes, "9") ==
               (is_muted ? R"({"filename_prefix":"ComfyUI"})"
                         : R"({"filename_prefix":"ComfyUI","images":["2",0]})"));
  }
}

BOOST_AUTO_TEST_CASE(ids_that_are_there_twice_become_new_ones) {
  // Node 3 of the root keeps its id; promoted widgets follow the one inside.
  const Json nodes = drawn(R"("properties": {"proxyWidgets": [["3", "cfg"]]},
                              "widgets_values": [1.5])",
                           R"(, {"id": 3, "type": "Text"})", R"([5, 7, 0, 9, 0, "IMAGE"])");
  BOOST_TEST(inputs_of(nodes, "3") == R"({"text":""})");
  BOOST_TEST(inputs_of(nodes, "7:3") == "gone");
  BOOST_TEST(inputs_of(nodes, "7:1") ==
             R"({"seed":11,"steps":12,"cfg":1.5,"sampler":"heun","tiled":false})");
  BOOST_TEST(inputs_of(nodes, "9") == R"({"filename_prefix":"ComfyUI","images":["7:1",0]})");
}

BOOST_AUTO_TEST_CASE(one_that_contains_itself_is_told) {
  const std::string loop = R"({"id": "loop", "name": "Loop", "nodes": [
      {"id": 1, "type": "loop", "title": "again"}], "links": []})";
  BOOST_TEST(refusal_of_nodes(R"({"id": 8, "type": "loop"})", "", definitions(loop))
                 .find("node '1' 'again' (loop): the subgraph 'Loop' contains itself.") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(copies_of_copies_are_limited) {
  std::string subgraphs;
  for (int level = 0; level < 20; ++level) {
    std::string nodes;
    for (int i = 0; i < 10; ++i)
      nodes += (i == 0 ? "" : ",") + std::string("{\"id\": ") + std::to_string(level * 10 + i) +
               ", \"type\": \"s" + std::to_string(level + 1) + "\"}";
    subgraphs += (level == 0 ? "" : ",") + std::string("{\"id\": \"s") + std::to_string(level) +
                 "\", \"nodes\": [" + nodes + "], \"links\": []}";
  }
  BOOST_TEST(refusal_of_nodes(R"({"id": 8, "type": "s0"})", "", definitions(subgraphs))
                 .find("its subgraphs make more than 200000 nodes.") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_group_node_is_its_nodes) {
  // Two samplers, the second of which reads the first: "image" is the input of the first, names
  // that are there twice get a title in front.
  const std::string group = R"(, "extra": {"groupNodes": {"Twice": {
    "nodes": [
      {"type": "Sample", "index": 0, "widgets_values": [1, "fixed", 2, 3.0, "euler", false],
       "inputs": [{"name": "model", "type": "MODEL", "link": null},
                  {"name": "image", "type": "IMAGE", "link": null}],
       "outputs": [{"name": "IMAGE", "type": "IMAGE", "links": []}]},
      {"type": "Sample", "index": 1, "title": "Last", "widgets_values": [1, "fixed", 2, 3.0, "euler", false],
       "inputs": [{"name": "model", "type": "MODEL", "link": null},
                  {"name": "image", "type": "IMAGE", "link": null}],
       "outputs": [{"name": "IMAGE", "type": "IMAGE", "links": []}]}],
    "links": [[0, 0, 1, 1, 5, "IMAGE"]], "external": [], "config": {}}}})";
  const Json nodes = convert_nodes(
      R"({"id": 7, "type": "workflow>Twice",
          "inputs": [{"name": "model", "type": "MODEL", "link": 1},
                     {"name": "Last model", "type": "MODEL", "link": 2}],
          "outputs": [{"name": "IMAGE", "type": "IMAGE", "links": [5]}],
          "widgets_values": [10, "fixed", 20, 3.5, "heun", true, 30, "fixed", 40, 4.5, "euler", false]},
         {"id": 1, "type": "Model"}, {"id": 2, "type": "Model"},
         {"id": 9, "type": "SaveImage", "inputs": [{"name": "images", "type": "IMAGE", "link": 5}]})",
      R"([1, 1, 0, 7, 0, "MODEL"], [2, 2, 0, 7, 1, "MODEL"], [5, 7, 0, 9, 0, "IMAGE"])", group);
  BOOST_TEST(inputs_of(nodes, "7:0") ==
             R"({"seed":10,"steps":20,"cfg":3.5,"sampler":"heun","tiled":true,"model":["1",0]})");
  BOOST_TEST(inputs_of(nodes, "7:1") ==
             R"({"seed":30,"steps":40,"cfg":4.5,"sampler":"euler","tiled":false,)"
             R"("model":["2",0],"image":["7:0",0]})");
  BOOST_TEST(inputs_of(nodes, "9") == R"({"filename_prefix":"ComfyUI","images":["7:1",0]})");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
