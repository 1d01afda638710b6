// Which outputs run when something is wrong, and what ComfyUI's server would answer. Types,
// messages and details are those that it is known to give.
#include "engine/graph/prompt_verdict.h"

#include <boost/test/unit_test.hpp>

#include "engine/graph/bind.h"
#include "tests/support/test_nodes.h"

namespace heddle::engine {
namespace {

Bound bound_of(const std::string& nodes) {
  return engine::bind(parse_workflow("{" + nodes + "}", "w.json"), test::test_catalog());
}

std::string errors_of(const Bound& bound) {
  std::string all;
  for (const Problem& problem : bound.problems)
    if (problem.severity == Problem::Severity::error) all += problem.message + "\n";
  return all;
}

const Json& error_of(const Bound& bound, std::string_view node) {
  return bound.answer.at("node_errors").at(node).at("errors").at(std::size_t{0});
}

// type, message, details of the first error of a node.
std::string said(const Bound& bound, std::string_view node) {
  const Json& error = error_of(bound, node);
  return error.at("type").as_string() + " | " + error.at("message").as_string() + " | " +
         error.at("details").as_string();
}

const std::string kLoad = R"("l": {"class_type": "LoadImage", "inputs": {"image": "a"}}, )";
const std::string kSave = R"("s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}})";

// A sampler whose inputs a test changes, before an output that is right.
std::string beside(const std::string& inputs) {
  return kLoad + kSave + R"(, "v": {"class_type": "VAELoader", "inputs": {"vae_name": "x"}},
    "e": {"class_type": "EmptyLatentImage", "inputs": {)" +
         inputs +
         R"(}}, "d": {"class_type": "VAEDecode", "inputs": {"samples": ["e", 0], "vae": ["v", 0]}},
    "t": {"class_type": "SaveImage", "inputs": {"images": ["d", 0]}})";
}

BOOST_AUTO_TEST_SUITE(prompt_verdict)

BOOST_AUTO_TEST_CASE(outputs_that_need_nothing_faulty_run) {
  const Bound bound = bound_of(beside(R"("width": 1)"));
  BOOST_TEST(bound.can_run);
  BOOST_REQUIRE(bound.graph.sinks.size() == 1u);
  BOOST_TEST(bound.graph.nodes[bound.graph.sinks[0]].id == "s");
  BOOST_TEST(bound.graph.nodes.size() == 2u);
  BOOST_TEST(errors_of(bound).find("node 'e'") != std::string::npos);
  BOOST_TEST((bound.answer.find("error") == nullptr));
  BOOST_TEST(write_json(bound.answer.at("node_errors").at("e").at("dependent_outputs")) ==
             R"(["t"])");
  BOOST_TEST(bound.answer.at("node_errors").at("e").at("class_type").as_string() ==
             "EmptyLatentImage");
  BOOST_TEST(bound.answer.at("node_errors").size() == 1u);
}

BOOST_AUTO_TEST_CASE(nothing_runs_when_every_output_needs_something_faulty) {
  const Bound bound = bound_of(R"("s": {"class_type": "SaveImage", "inputs": {}})");
  BOOST_TEST(!bound.can_run);
  const Json& error = bound.answer.at("error");
  BOOST_TEST(error.at("type").as_string() == "prompt_outputs_failed_validation");
  BOOST_TEST(error.at("message").as_string() == "Prompt outputs failed validation");
  BOOST_TEST(error.at("details").as_string() == "Required input is missing: images");
  BOOST_TEST(said(bound, "s") == "required_input_missing | Required input is missing | images");
}

BOOST_AUTO_TEST_CASE(without_outputs_nothing_runs) {
  const Bound bound = bound_of(R"("l": {"class_type": "LoadImage", "inputs": {"image": "a"}})");
  BOOST_TEST(!bound.can_run);
  BOOST_TEST(bound.answer.at("error").at("type").as_string() == "prompt_no_outputs");
  BOOST_TEST(bound.answer.at("node_errors").size() == 0u);
}

BOOST_AUTO_TEST_CASE(an_unknown_class_stops_everything_wherever_it_is) {
  const Bound bound =
      bound_of(kLoad + kSave + R"(, "x": {"class_type": "Nobody", "_meta": {"title": "mine"}})");
  BOOST_TEST(!bound.can_run);
  BOOST_TEST(errors_of(bound).find("no loaded plugin brings the class 'Nobody'") !=
             std::string::npos);
  const Json& error = bound.answer.at("error");
  BOOST_TEST(error.at("type").as_string() == "missing_node_type");
  BOOST_TEST(write_json(error.at("extra_info")) ==
             R"({"node_id":"x","class_type":"Nobody","node_title":"mine"})");
}

BOOST_AUTO_TEST_CASE(what_is_lacking_is_told_once_and_first) {
  Catalog catalog = test::test_catalog();
  catalog.set_file_lister([](std::string_view folder, std::int32_t) {
    return folder.empty() ? std::vector<std::string>{"some/here.safetensors"}
                          : std::vector<std::string>();
  });
  const std::string load = R"({"class_type": "VAELoader", "inputs": {"vae_name": "gone.gguf"}})";
  const Bound bound =
      engine::bind(parse_workflow(
                       R"({"s": {"class_type": "SaveImage", "inputs": {"images": ["d", 0]}},
      "d": {"class_type": "VAEDecode", "inputs": {"samples": ["e", 0], "vae": ["v", 0]}},
      "e": {"class_type": "EmptyLatentImage", "inputs": {"width": 1}},
      "t": {"class_type": "SaveImage", "inputs": {"images": ["f", 0]}},
      "f": {"class_type": "VAEDecode", "inputs": {"samples": ["e", 0], "vae": ["w", 0]}},
      "v": )" + load + R"(, "w": )" +
                           load + R"(, "u": )" + load + R"(,
      "x": {"class_type": "Nobody", "inputs": {"a": "here.safetensors", "b": "lost.safetensors",
                                               "c": "a text"}},
      "y": {"class_type": "Nobody", "inputs": {"b": "lost.safetensors"}}})",
                       "w.json"),
                   catalog);
  std::vector<std::string> lacks;
  for (const Problem& problem : bound.problems) lacks.push_back(problem.lacks);
  BOOST_TEST(lacks == (std::vector<std::string>{"file vae/gone.gguf", "class Nobody",
                                                "file */lost.safetensors", ""}));
  const auto told = [&](std::size_t i, std::string_view text) {
    return bound.problems[i].message.find(text) != std::string::npos;
  };
  BOOST_TEST(bound.problems[0].node == "v");
  BOOST_TEST(told(0, "Other nodes that need it: 'w', 'u'."));
  BOOST_TEST(told(1, "node 'x': no loaded plugin brings the class 'Nobody'"));
  BOOST_TEST(told(1, "Other nodes that need it: 'y'."));
  BOOST_TEST(told(2, "node 'x' (Nobody), input 'b': there is no file 'lost.safetensors'"));
  BOOST_TEST(told(3, "node 'e'"));
  const Bound wide = [&] {
    std::string nodes;
    for (int i = 0; i < 40; ++i)
      nodes += (i == 0 ? "{" : ", ") + std::string("\"") + std::to_string(i) +
               R"(": {"class_type": "Nobody", "inputs": {}})";
    return engine::bind(parse_workflow(nodes + "}", "w.json"), catalog);
  }();
  BOOST_TEST(wide.problems[0].message.find("'16', (23 more).") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(literals_are_refused_in_comfyui_s_words) {
  BOOST_TEST(said(bound_of(beside(R"("width": 1)")), "e") ==
             "value_smaller_than_min | Value 1 smaller than min of 16 | width");
  BOOST_TEST(said(bound_of(beside(R"("width": 99999)")), "e") ==
             "value_bigger_than_max | Value 99999 bigger than max of 16384 | width");
  BOOST_TEST(said(bound_of(beside(R"("width": "1.5")")), "e") ==
             "invalid_input_type | Failed to convert an input value to a INT value | width, 1.5, "
             "invalid literal for int() with base 10: '1.5'");
  BOOST_TEST(said(bound_of(beside(R"("width": null)")), "e") ==
             "invalid_input_type | Failed to convert an input value to a INT value | width, None, "
             "int() argument must be a string, a bytes-like object or a real number, not "
             "'NoneType'");
  BOOST_TEST(
      write_json(
          error_of(bound_of(beside(R"("width": 1)")), "e").at("extra_info").at("received_value")) ==
      "1");
}

BOOST_AUTO_TEST_CASE(links_are_refused_in_comfyui_s_words) {
  const auto save = [](const std::string& link) {
    return said(
        bound_of(kLoad + R"("s": {"class_type": "SaveImage", "inputs": {"images": )" + link + "}}"),
        "s");
  };
  BOOST_TEST(save(R"(["l", 1])") ==
             "return_type_mismatch | Return type mismatch between linked nodes | images, "
             "received_type(MASK) mismatch input_type(IMAGE)");
  BOOST_TEST(save(R"(["7", 0])") ==
             "exception_during_validation | Exception when validating node | '7'");
  BOOST_TEST(save(R"(["l", 9])") ==
             "exception_during_validation | Exception when validating node | tuple index out of "
             "range");
}

BOOST_AUTO_TEST_CASE(a_text_is_no_choice_when_it_comes_through_a_link) {
  test::TestNode text("test.text");
  text.out("STRING");
  test::TestNode names("test.names");
  names.out("COMBO");
  test::TestNode reader("test.reader", HEDDLE_NODE_SINK);
  reader.in("choice", "STRING", test::choice_widget(test::kClipDevices, "cpu"));
  Catalog catalog;
  for (test::TestNode* node : {&text, &names, &reader})
    catalog.add(std::make_shared<const NodeType>(&node->desc, "test", nullptr),
                Catalog::Duplicate::refuse);
  const auto linked = [&](const std::string& name) {
    return engine::bind(parse_workflow(R"({"a": {"class_type": ")" + name +
                                           R"(", "inputs": {}}, "r": {"class_type": "test.reader",
                                           "inputs": {"choice": ["a", 0]}}})",
                                       "w.json"),
                        catalog);
  };
  BOOST_TEST(linked("test.names").can_run);
  const Bound refused = linked("test.text");
  BOOST_TEST(!refused.can_run);
  BOOST_TEST(said(refused, "r") ==
             "return_type_mismatch | Return type mismatch between linked nodes | choice, "
             "received_type(STRING) mismatch input_type(['default', 'cpu'])");
  BOOST_TEST(errors_of(refused).find("expects a choice (COMBO), got STRING") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_cycle_stops_the_outputs_that_wait_for_it) {
  const Bound bound =
      bound_of(kLoad + kSave + R"(, "a": {"class_type": "test.many", "inputs": {"x": ["b", 0]}},
      "b": {"class_type": "test.many", "inputs": {"x": ["a", 0]}},
      "t": {"class_type": "SaveImage", "inputs": {"images": ["b", 0]}})");
  BOOST_TEST(bound.can_run);
  BOOST_TEST(bound.graph.nodes.size() == 2u);
  BOOST_TEST(said(bound, "a") ==
             "dependency_cycle | Dependency cycle detected | a (test.many) -> b (test.many) -> a "
             "(test.many)");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
