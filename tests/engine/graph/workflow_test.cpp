#include "engine/graph/workflow.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/golden_files.h"
#include "tests/support/refusal.h"

namespace heddle::engine {
BOOST_AUTO_TEST_SUITE(workflow)

namespace {

std::string refusal(std::string_view text) {
  const Error error = test::refusal_of([&] { parse_workflow(text, "scene.json"); });
  BOOST_TEST((error.code() == Code::invalid_argument));
  return error.what();
}

Workflow parse(std::string_view text) { return parse_workflow(text, "scene.json"); }

const Json& literal(const Workflow& workflow, std::size_t node, std::size_t input) {
  return std::get<Json>(workflow.nodes.at(node).inputs.at(input).value);
}

const Link& link(const Workflow& workflow, std::size_t node, std::size_t input) {
  return std::get<Link>(workflow.nodes.at(node).inputs.at(input).value);
}

constexpr std::string_view kWrapped = R"({
  "client_id": "abc",
  "devices": {"cuda:0": {"budget": "14GiB"}, "cpu": {}},
  "prompt": {
    "1": {"class_type": "UNETLoader", "inputs": {"unet_name": "a"}, "device": "cuda:0", "prefer": "cuda", "parallel": "tensor",
          "blocks": [{"match": "double.*", "device": "cuda:0"}, {"match": "*", "device": "cuda:1"}],
          "_meta": {"title": "Load it"}, "is_changed": ["x"], "mine": 5},
    "2": {"class_type": "Use", "inputs": {"model": ["1", "MODEL"], "seed": 18446744073709551615}}
  },
  "extra_data": {"extra_pnginfo": {}}
})";

BOOST_AUTO_TEST_CASE(the_bare_form_is_a_map_of_nodes) {
  const Workflow w = parse(
      "{\n \"b\": {\"inputs\": {\"x\": 5,\n  \"y\": [\"a\", 1]}, \"class_type\": \"Two\"},\n "
      "\"a\": {\"class_type\": \"One\"}}");
  BOOST_REQUIRE_EQUAL(w.nodes.size(), 2u);
  BOOST_TEST(w.name == "scene.json");
  BOOST_TEST(w.nodes[0].id == "b");
  BOOST_TEST(w.nodes[0].class_type == "Two");
  BOOST_TEST(w.nodes[0].line == 2u);
  BOOST_TEST(w.nodes[0].column == 2u);
  BOOST_TEST(w.nodes[0].inputs[1].name == "y");
  BOOST_TEST(w.nodes[0].inputs[1].line == 3u);
  BOOST_TEST(w.nodes[0].inputs[1].column == 8u);
  BOOST_TEST((link(w, 0, 1) == Link{"a", 1u}));
  BOOST_TEST(w.nodes[1].inputs.empty());
  BOOST_TEST(w.find("a") == &w.nodes[1]);
  BOOST_TEST((w.find("c") == nullptr));
}

BOOST_AUTO_TEST_CASE(the_wrapped_form_has_devices_and_hints_and_keeps_what_it_does_not_know) {
  const Workflow w = parse(kWrapped);
  BOOST_REQUIRE_EQUAL(w.devices.size(), 2u);
  BOOST_TEST(w.devices[0].device == "cuda:0");
  BOOST_TEST(w.devices[0].budget_bytes.value() == 14ull << 30);
  BOOST_TEST(!w.devices[1].budget_bytes.has_value());
  const WorkflowNode& node = w.nodes.at(0);
  BOOST_TEST(node.title == "Load it");
  BOOST_TEST(node.hints.device == "cuda:0");
  BOOST_TEST(node.hints.prefer == "cuda");
  BOOST_TEST(node.hints.parallel == "tensor");
  BOOST_REQUIRE_EQUAL(node.hints.blocks.size(), 2u);
  BOOST_TEST(node.hints.blocks[1].match == "*");
  BOOST_TEST(node.hints.blocks[1].device == "cuda:1");
  BOOST_TEST(write_json(node.rest) ==
             R"({"_meta":{"title":"Load it"},"is_changed":["x"],"mine":5})");
  BOOST_TEST(write_json(w.rest) == R"({"client_id":"abc","extra_data":{"extra_pnginfo":{}}})");
  BOOST_TEST((link(w, 1, 0) == Link{"1", "MODEL"}));
  BOOST_TEST(literal(w, 1, 1).as_uint64() == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(wrapped_values_are_literals_and_arrays_are_links) {
  const Workflow w = parse(
      R"({"1": {"class_type": "X", "inputs": {"list": {"__value__": ["a", 0]}, "number": {"__value__": 5},
                               "object": {"a": 1}, "whole": [12, 0], "real": ["a", 2.0]}}})");
  BOOST_TEST(write_json(literal(w, 0, 0)) == R"(["a",0])");
  BOOST_TEST(literal(w, 0, 1).as_int64() == 5);
  BOOST_TEST(write_json(literal(w, 0, 2)) == R"({"a":1})");
  BOOST_TEST((link(w, 0, 3) == Link{"12", 0u}));
  BOOST_TEST((link(w, 0, 4) == Link{"a", 2u}));
}

BOOST_AUTO_TEST_CASE(nodes_of_the_bare_form_may_be_called_prompt_devices_or_nodes) {
  const Workflow w = parse(
      R"({"prompt": {"class_type": "X"}, "devices": {"class_type": "Y"}, "nodes": {"class_type": "Z"}})");
  BOOST_TEST(w.nodes.size() == 3u);
  const Workflow wrapped = parse(R"({"prompt": {"class_type": {"class_type": "X"}}})");
  BOOST_REQUIRE_EQUAL(wrapped.nodes.size(), 1u);
  BOOST_TEST(wrapped.nodes[0].id == "class_type");
}

BOOST_AUTO_TEST_CASE(what_looks_like_a_node_before_the_form_is_known_stays_what_it_is) {
  const Workflow wrapped =
      parse_workflow(R"({"2": {"class_type": "B"}, "prompt": {"1": {"class_type": "A"}}})", "w");
  BOOST_REQUIRE_EQUAL(wrapped.nodes.size(), 1u);
  BOOST_TEST(wrapped.nodes[0].id == "1");
  BOOST_TEST(write_json(wrapped.rest) == R"({"2":{"class_type":"B"}})");
  const Workflow bare = parse_workflow(
      R"({"prompt": {"class_type": "A", "inputs": {"class_type": "x"}}, "2": {"class_type": "B"}})",
      "w");
  BOOST_REQUIRE_EQUAL(bare.nodes.size(), 2u);
  BOOST_TEST(bare.nodes[0].id == "prompt");
  BOOST_TEST(bare.nodes[0].inputs.at(0).name == "class_type");
  BOOST_TEST(bare.nodes[1].class_type == "B");
  BOOST_TEST(refusal(R"({"prompt": {"1": {"class_type": "A"}, "1": {"class_type": "B"}}})") ==
             "scene.json:1:13: node '1' is there more than once. Remove or rename all but one.");
}

BOOST_AUTO_TEST_CASE(writing_is_canonical_and_reads_back_the_same) {
  const std::string bare =
      R"({"1":{"class_type":"X","inputs":{"a":5,"b":5.0,"c":{"__value__":[1,[2]]},"d":["2","OUT"],"e":["2",1]}}})";
  BOOST_TEST(write_workflow(parse(bare)) == bare);
  const std::string wrapped = write_workflow(parse(kWrapped));
  BOOST_TEST(
      wrapped ==
      R"({"devices":{"cuda:0":{"budget":15032385536},"cpu":{}},"prompt":{"1":{"class_type":"UNETLoader","inputs":{"unet_name":"a"},)"
      R"("device":"cuda:0","prefer":"cuda","parallel":"tensor","blocks":[{"match":"double.*","device":"cuda:0"},{"match":"*","device":"cuda:1"}],)"
      R"("_meta":{"title":"Load it"},"is_changed":["x"],"mine":5},"2":{"class_type":"Use","inputs":{"model":["1","MODEL"],)"
      R"("seed":18446744073709551615}}},"client_id":"abc","extra_data":{"extra_pnginfo":{}}})");
  BOOST_TEST(write_workflow(parse(wrapped)) == wrapped);
  const std::string nested =
      R"({"1":{"class_type":"X","inputs":{"a":{"__value__":{"__value__":5}}}}})";
  BOOST_TEST(write_workflow(parse(nested)) == nested);
  BOOST_TEST(write_workflow(parse("{}")) == "{}");
}

BOOST_AUTO_TEST_CASE(nodes_alone_are_written_without_placement) {
  const Json nodes = nodes_to_json(parse(kWrapped));
  BOOST_TEST(
      write_json(nodes.at("1")) ==
      R"({"class_type":"UNETLoader","inputs":{"unet_name":"a"},"_meta":{"title":"Load it"},"is_changed":["x"],"mine":5})");
}

BOOST_AUTO_TEST_CASE(sample_workflows_survive_a_round_trip) {
  for (const std::filesystem::path& path : test::files_in("golden/workflows", ".json")) {
    const std::string text = test::read_text(path);
    BOOST_TEST((parse_json(write_workflow(parse(text)), "written") == parse_json(text, "original")),
               path.filename());
  }
}

BOOST_AUTO_TEST_CASE(nesting_of_200000_levels_is_an_error_with_its_place) {
  const std::string text =
      R"({"1": {"class_type": "X", "inputs": {"a": )" + std::string(200'000, '[');
  BOOST_TEST(refusal(text).starts_with("scene.json:1:"));
}

BOOST_AUTO_TEST_CASE(a_node_is_named_by_its_id_its_title_or_its_class) {
  const Workflow w = parse(
      R"({"3": {"class_type": "Load", "_meta": {"title": "first"}}, "first": {"class_type": "Save"},
                               "4": {"class_type": "Load", "_meta": {"title": "twice"}}, "5": {"class_type": "Mix", "_meta": {"title": "twice"}}})");
  BOOST_TEST(find_node(w, "3") == 0u);
  BOOST_TEST(find_node(w, "first") == 1u);
  BOOST_TEST(find_node(w, "Mix") == 3u);
  const auto error_of = [&](std::string_view name) {
    return test::refusal_of([&] { find_node(w, name); });
  };
  BOOST_TEST(
      error_of("twice").what() ==
      std::string(
          "scene.json: 'twice' may be any of 2 nodes: '4' (Load), '5' (Mix). Name one by its id."));
  BOOST_TEST(
      error_of("Load").what() ==
      std::string(
          "scene.json: 'Load' may be any of 2 nodes: '3' (Load), '4' (Load). Name one by its id."));
  BOOST_TEST((error_of("Saev").code() == Code::not_found));
  BOOST_TEST(error_of("Saev").what() ==
             std::string(
                 "scene.json: there is no node 'Saev'. Did you mean 'Save'? Name a node by its id, "
                 "its title, or its class where only one node has it."));
  BOOST_TEST((error_of("").code() == Code::not_found));
}

// What --set makes of a text for an input of that type: the input as JSON.
std::string set(std::string_view value, std::string_view type, std::string_view present = "null") {
  std::string text = R"({"1": {"class_type": "X", "inputs": {"x": )";
  Workflow w = parse(text.append(present) + "}}}");
  set_input(w, 0, "x", value, type);
  BOOST_REQUIRE_EQUAL(w.nodes[0].inputs.size(), 1u);
  BOOST_TEST(w.nodes[0].inputs[0].line == 0u);
  return write_json(nodes_to_json(w).at("1").at("inputs").at("x"));
}

BOOST_AUTO_TEST_CASE(set_takes_json_of_the_declared_type_and_else_text) {
  BOOST_TEST(set("5", "INT") == "5");
  BOOST_TEST(set("18446744073709551615", "INT") == "18446744073709551615");
  BOOST_TEST(set("5.5", "INT") == "5.5");
  BOOST_TEST(set("five", "INT") == R"("five")");
  BOOST_TEST(set("1e3", "FLOAT") == "1000.0");
  BOOST_TEST(set("true", "BOOLEAN") == "true");
  BOOST_TEST(set("yes", "BOOLEAN") == R"("yes")");
  BOOST_TEST(set("5", "STRING") == R"("5")");
  BOOST_TEST(set("true", "STRING") == R"("true")");
  BOOST_TEST(set("a fox, \"red\"", "STRING") == R"("a fox, \"red\"")");
  BOOST_TEST(set("\"5\"", "STRING") == R"("5")");
  BOOST_TEST(set("", "STRING") == R"("")");
  BOOST_TEST(set("[\"1\", 0]", "STRING") == R"("[\"1\", 0]")");
  BOOST_TEST(set("{\"a\": 1}", "*") == R"({"a":1})");
  BOOST_TEST(set("true", "INT,BOOLEAN") == "true");
}

BOOST_AUTO_TEST_CASE(set_follows_the_present_literal_where_the_class_is_unknown) {
  BOOST_TEST(set("5", "", "\"text\"") == R"("5")");
  BOOST_TEST(set("5", "", "1.5") == "5");
  BOOST_TEST(set("x", "", "1.5") == R"("x")");
  BOOST_TEST(set("false", "", "true") == "false");
  BOOST_TEST(set("5", "", "true") == R"("5")");
  BOOST_TEST(set("5", "", "null") == "5");
}

BOOST_AUTO_TEST_CASE(set_makes_links_lists_and_new_inputs) {
  BOOST_TEST(set("[\"4\", 1]", "IMAGE") == R"(["4",1])");
  BOOST_TEST(set("[4, \"MASK\"]", "INT") == R"(["4","MASK"])");
  BOOST_TEST(set(R"(["4", 0.0])", "*") == R"(["4",0])");  // a slot, as ComfyUI takes it
  BOOST_TEST(set("[1, 2, 3]", "*") == R"({"__value__":[1,2,3]})");
  BOOST_TEST(set("{\"__value__\": [1, 2]}", "*") == R"({"__value__":[1,2]})");
  Workflow w = parse(R"({"1": {"class_type": "X"}})");
  set_input(w, 0, "new", "7", "INT");
  BOOST_TEST(write_workflow(w) == R"({"1":{"class_type":"X","inputs":{"new":7}}})");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
