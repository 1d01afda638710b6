#include "engine/graph/bind.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "engine/base/text.h"
#include "engine/graph/graph_text.h"
#include "engine/graph/run_targets.h"
#include "tests/support/golden_files.h"
#include "tests/support/test_nodes.h"

namespace heddle::engine {
namespace {

Bound bind_text(std::string_view text, const std::vector<std::string>& targets = {}) {
  Workflow workflow = parse_workflow(text, "scene.json");
  if (!targets.empty()) set_targets(workflow, targets);
  return engine::bind(workflow, test::test_catalog());
}

std::string messages(const Bound& bound) {
  std::string all;
  for (const Problem& problem : bound.problems) all += problem.message + "\n";
  return all;
}

// The value that an input of test.values gets, as JSON; "absent"; or the problem's message.
std::string bound_value(std::string_view input, std::string_view json) {
  const Bound bound =
      bind_text(cat(R"({"v": {"class_type": "test.values", "inputs": {")", input, "\": ", json,
                    R"(}}, "s": {"class_type": "test.show", "inputs": {"any": ["v", 0]}}})"));
  if (!bound.problems.empty()) return messages(bound);
  const Node& node = bound.graph.nodes.at(0);
  const Binding& binding = node.inputs.at(node.type->find_input(input).value());
  if (std::holds_alternative<std::monostate>(binding)) return "absent";
  return write_json(to_json(*std::get<Value>(binding)));
}

BOOST_AUTO_TEST_SUITE(bind_)

BOOST_AUTO_TEST_CASE(integers_are_coerced_as_comfyui_does) {
  BOOST_TEST(bound_value("int", "5") == "5");
  BOOST_TEST(bound_value("int", "5.9") == "5");
  BOOST_TEST(bound_value("int", "-5.9") == "-5");
  BOOST_TEST(bound_value("int", "\" 12 \"") == "12");
  BOOST_TEST(bound_value("int", "true") == "1");
  BOOST_TEST(bound_value("whole", "9223372036854775808") == "9223372036854775808");
  BOOST_TEST(bound_value("whole", "\"1_000\"") == "1000");
}

BOOST_AUTO_TEST_CASE(seeds_range_over_all_of_64_bits) {
  BOOST_TEST(bound_value("seed", "18446744073709551615") == "18446744073709551615");
  BOOST_TEST(bound_value("seed", "\"18446744073709551615\"") == "18446744073709551615");
  BOOST_TEST(bound_value("seed", "0") == "0");
  BOOST_TEST(bound_value("seed", "-1").find("-1 is below the least value 0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(numbers_are_coerced_as_comfyui_does) {
  BOOST_TEST(bound_value("float", "5") == "5.0");
  BOOST_TEST(bound_value("float", "0.25") == "0.25");
  BOOST_TEST(bound_value("float", "\"1e-3\"") == "0.001");
  BOOST_TEST(bound_value("float", "true") == "1.0");
  for (const char* odd : {"NaN", "Infinity", "\"-inf\""})
    BOOST_TEST(bound_value("float", odd).find("is not a finite number. Give a number.") !=
                   std::string::npos,
               odd);
}

BOOST_AUTO_TEST_CASE(text_is_python_s_text_of_anything) {
  BOOST_TEST(bound_value("text", "\"a\"") == "\"a\"");
  BOOST_TEST(bound_value("text", "5") == "\"5\"");
  BOOST_TEST(bound_value("text", "5.0") == "\"5.0\"");
  BOOST_TEST(bound_value("text", "true") == "\"True\"");
  BOOST_TEST(bound_value("text", "null") == "\"None\"");
  BOOST_TEST(bound_value("text", R"({"__value__": [1, "a"]})") == R"("[1, 'a']")");
}

BOOST_AUTO_TEST_CASE(booleans_are_the_truth_of_anything) {
  BOOST_TEST(bound_value("toggle", "false") == "false");
  BOOST_TEST(bound_value("toggle", "0") == "false");
  BOOST_TEST(bound_value("toggle", "\"\"") == "false");
  BOOST_TEST(bound_value("toggle", "null") == "false");
  BOOST_TEST(bound_value("toggle", "\"false\"") == "true");
  BOOST_TEST(bound_value("toggle", "0.5") == "true");
}

BOOST_AUTO_TEST_CASE(other_types_take_literals_as_they_are) {
  BOOST_TEST(bound_value("any", "5.5") == "5.5");
  BOOST_TEST(bound_value("any", R"({"__value__": [1, {"a": null}]})") == R"([1,{"a":null}])");
  BOOST_TEST(bound_value("number", "\"5\"") == "\"5\"");
  BOOST_TEST(bound_value("any", "null") == "absent");
}

BOOST_AUTO_TEST_CASE(given_values_are_held_to_what_the_port_declares) {
  const auto said = [](const char* input, const Value& value) {
    GivenValues given;
    given[{"v", input}] = value;
    return messages(engine::bind(
        parse_workflow(
            R"({"v": {"class_type": "test.values"}, "s": {"class_type": "test.show", "inputs": {"any": ["v", 0]}}})",
            "w.json"),
        test::test_catalog(), given));
  };
  BOOST_TEST(said("int", make_value(std::int64_t{100})) == "");
  BOOST_TEST(said("any", make_value(std::int64_t{101})) == "");
  BOOST_TEST(
      said("int", make_value(std::int64_t{101}))
          .find("node 'v' (test.values), input 'int': 101 is above the greatest value 100. Give a "
                "number from -100 to 100.") != std::string::npos);
  BOOST_TEST(said("float", make_value(std::nan(""))).find("not a finite number") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(inputs_that_are_not_given_take_the_widget_s_default) {
  const Bound bound = bind_text(
      R"({"v": {"class_type": "test.values"}, "s": {"class_type": "test.show", "inputs": {"any": ["v", "ANY"]}}})");
  BOOST_TEST(messages(bound) == "");
  BOOST_TEST(graph_text(bound.graph) ==
             "0 v test.values int=3 float=0.5 text=\"abc\" toggle=true seed=0\n"
             "1 s test.show any=v.ANY text=\"\"\n");
}

BOOST_AUTO_TEST_CASE(a_choice_without_a_default_takes_its_first) {
  const Bound bound = bind_text(
      R"({"k": {"class_type": "KSamplerSelect"}, "s": {"class_type": "test.show", "inputs": {"any": ["k", 0]}}})");
  BOOST_TEST(graph_text(bound.graph) ==
             "0 k KSamplerSelect sampler_name=\"euler\"\n1 s test.show any=k.SAMPLER text=\"\"\n");
}

BOOST_AUTO_TEST_CASE(file_names_are_not_checked_when_nobody_knows_the_folders) {
  const Bound bound = bind_text(
      R"({"l": {"class_type": "LoadImage", "inputs": {"image": "any.png"}}, "s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}}})");
  BOOST_TEST(messages(bound) == "");
}

BOOST_AUTO_TEST_CASE(a_picture_may_name_the_folder_it_is_loaded_from) {
  Catalog catalog = test::test_catalog();
  catalog.set_file_lister(
      [](std::string_view folder, std::int32_t) {
        return std::vector<std::string>{cat(folder, ".png"), "a [b].png"};
      },
      [](std::string_view folder) { return std::vector<std::string>{cat("in/", folder)}; });
  const auto said = [&](std::string_view file) {
    return messages(engine::bind(
        parse_workflow(
            cat(R"({"l": {"class_type": "LoadImage", "inputs": {"image": ")", file,
                R"("}}, "s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}}})"),
            "w.json"),
        catalog));
  };
  for (const char* file : {"input.png", "input.png [input]", "output.png [output]",
                           "temp.png [temp]", "a [b].png", "a [b].png [output]"})
    BOOST_TEST(said(file) == "", file);
  for (const char* file : {"output.png", "input.png [output]", "input.png [b]", "temp.png[temp]"})
    BOOST_TEST(said(file) != "", file);
  const std::string fault = said("outptu.png [output]");
  BOOST_TEST(fault.find("there is no file 'outptu.png' in 'output'. Did you mean 'output.png'? "
                        "Looked in 'in/output'.") != std::string::npos,
             fault);
}

BOOST_AUTO_TEST_CASE(types_match_by_wildcard_or_by_a_name_in_common) {
  const auto said = [](std::string_view input, std::string_view output) {
    return messages(bind_text(cat(
        R"({"a": {"class_type": "test.values"}, "b": {"class_type": "test.values", "inputs": {")",
        input, R"(": ["a", ")", output,
        R"("]}}, "s": {"class_type": "test.show", "inputs": {"any": ["b", 0]}}})")));
  };
  for (const auto& [input, output] :
       std::vector<std::pair<std::string, std::string>>{{"int", "INT"},
                                                        {"int", "ANY"},
                                                        {"any", "STRING"},
                                                        {"number", "INT"},
                                                        {"number", "FLOAT"},
                                                        {"number", "UNION"},
                                                        {"text", "UNION"}})
    BOOST_TEST(said(input, output) == "", input + " " + output);
  BOOST_TEST(said("float", "INT")
                 .find("expects FLOAT, got INT from 'a' output 0 (INT). Output 1 (FLOAT) of 'a' is "
                       "FLOAT.") != std::string::npos);
  BOOST_TEST(said("number", "STRING").find("expects INT,FLOAT, got STRING") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_literal_for_a_linked_type_is_refused_with_its_place) {
  const Bound bound =
      bind_text("{\"s\": {\"class_type\": \"SaveImage\", \"inputs\": {\n  \"images\": 5}}}");
  BOOST_TEST(messages(bound) ==
             "scene.json:2:13: node 's' (SaveImage), input 'images': expects a link to IMAGE, got "
             "the integer 5. Add a node that gives "
             "IMAGE: 'LoadImage' or 'VAEDecode' or 'test.many'.\n");
  BOOST_TEST(bound.problems.at(0).node == "s");
}

BOOST_AUTO_TEST_CASE(undeclared_inputs_are_kept_and_warned_about) {
  const Bound bound =
      bind_text(R"({"l": {"class_type": "LoadImage", "inputs": {"image": "a", "upload": "image"}},
      "s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0], "after": ["l", "MASK"]}}})");
  BOOST_TEST(bound.problems.size() == 2u);
  for (const Problem& problem : bound.problems)
    BOOST_TEST((problem.severity == Problem::Severity::warning));
  BOOST_TEST(graph_text(bound.graph) ==
             "0 l LoadImage image=\"a\" +upload=\"image\"\n"
             "1 s SaveImage images=l.IMAGE filename_prefix=\"ComfyUI\" +after=l.MASK\n");
}

BOOST_AUTO_TEST_CASE(a_node_for_any_input_takes_undeclared_ones_without_a_warning) {
  const Bound bound = bind_text(R"({"l": {"class_type": "LoadImage", "inputs": {"image": "a"}},
      "m": {"class_type": "test.many", "inputs": {"second": ["l", 0], "third": {"__value__": [1]}}},
      "s": {"class_type": "SaveImage", "inputs": {"images": ["m", 0]}}})");
  BOOST_TEST(messages(bound) == "");
  BOOST_TEST(graph_text(bound.graph).find("1 m test.many +second=l.IMAGE +third=<a list of 1>\n") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(hidden_inputs_stay_absent) {
  const Bound bound = bind_text(
      R"({"l": {"class_type": "LoadImage", "inputs": {"image": "a"}}, "s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}}})");
  const Node& save = bound.graph.nodes.at(1);
  BOOST_TEST(std::holds_alternative<std::monostate>(
      save.inputs.at(save.type->find_input("prompt").value())));
}

BOOST_AUTO_TEST_CASE(only_what_a_sink_needs_is_bound_and_the_rest_only_warns) {
  const Bound bound = bind_text(
      R"({"x": {"class_type": "KSampler"}, "l": {"class_type": "LoadImage", "inputs": {"image": "a"}},
      "s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}}})");
  BOOST_TEST(bound.can_run);
  BOOST_TEST(bound.graph.nodes.size() == 2u);
  BOOST_TEST(bound.graph.sinks == (std::vector<NodeIndex>{1}), boost::test_tools::per_element());
  BOOST_TEST(bound.problems.size() > 3u);
  for (const Problem& problem : bound.problems)
    BOOST_TEST((problem.severity == Problem::Severity::warning), problem.message);
}

constexpr std::string_view kTwoSinks =
    R"({"l": {"class_type": "LoadImage", "inputs": {"image": "a"}},
    "s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}}, "t": {"class_type": "SaveImage", "inputs": {"images": ["l", 1]}}})";

BOOST_AUTO_TEST_CASE(targets_choose_among_the_sinks) {
  const Bound bound = bind_text(kTwoSinks, {"s", "s"});
  BOOST_TEST(bound.graph.nodes.size() == 2u);
  BOOST_TEST(bound.graph.sinks.size() == 1u);
  BOOST_REQUIRE_EQUAL(bound.problems.size(), 1u);
  BOOST_TEST((bound.problems[0].severity == Problem::Severity::warning));
}

BOOST_AUTO_TEST_CASE(targets_that_are_no_sinks_are_errors) {
  const std::string said = messages(bind_text(kTwoSinks, {"x", "l", "s"}));
  BOOST_TEST(said.find("scene.json: there is no node 'x' to run for. Nodes that do: 's' "
                       "(SaveImage), 't' (SaveImage).") != std::string::npos);
  BOOST_TEST(said.find("scene.json: node 'l' (LoadImage) saves or shows nothing, so nothing can be "
                       "run for it.") != std::string::npos);
}

constexpr std::string_view kGoodSinks =
    R"({"l": {"class_type": "LoadImage", "inputs": {"image": "a"}},
    "s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}}, "t": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}}})";

BOOST_AUTO_TEST_CASE(a_workflow_may_name_its_targets) {
  const auto bound = [](const std::string& targets) {
    return bind_text(
        cat("{\"prompt\": ", kGoodSinks, ", \"partial_execution_targets\": ", targets, "}"));
  };
  const Bound one = bound(R"(["t"])");
  BOOST_TEST(one.can_run);
  BOOST_REQUIRE_EQUAL(one.graph.sinks.size(), 1u);
  BOOST_TEST(one.graph.nodes[one.graph.sinks[0]].id == "t");
  BOOST_TEST(bound("null").graph.sinks.size() == 2u);
  const Bound none = bound("[]");
  BOOST_TEST(!none.can_run);
  BOOST_TEST(none.answer.at("error").at("type").as_string() == "prompt_no_outputs");
  BOOST_TEST(messages(none).find("'partial_execution_targets' is empty, so there is nothing to do. "
                                 "Name a node in it, or leave it out to run for all. Nodes that "
                                 "do: 's' (SaveImage), 't' (SaveImage).") != std::string::npos);
  for (const char* wrong : {"5", "{}", "[1]", "\"t\""})
    BOOST_TEST(messages(bound(wrong)).find("needs a list of ids of nodes, as texts, got ") !=
               std::string::npos);
  Workflow workflow = parse_workflow(kGoodSinks, "w.json");
  set_targets(workflow, {"t"});
  BOOST_TEST(bind_text(write_workflow(workflow)).graph.sinks.size() == 1u);
  set_targets(workflow, {});
  BOOST_TEST(bind_text(write_workflow(workflow)).graph.sinks.size() == 2u);
}

BOOST_AUTO_TEST_CASE(very_many_targets_that_are_none_are_told_in_short) {
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back(cat("n", i));
  BOOST_TEST(bind_text(kTwoSinks, names).problems.size() < 40u);
}

BOOST_AUTO_TEST_CASE(hints_and_titles_come_along) {
  const Bound bound = bind_text(
      R"({"l": {"class_type": "LoadImage", "inputs": {"image": "a"}, "device": "cuda", "_meta": {"title": "the fox"}},
      "s": {"class_type": "SaveImage", "inputs": {"images": ["l", 0]}, "prefer": "cpu", "parallel": "none", "blocks": [{"match": "a.*", "device": "cpu"}]}})");
  BOOST_TEST(bound.graph.nodes.at(0).title == "the fox");
  BOOST_TEST(graph_text(bound.graph) ==
             "0 l LoadImage image=\"a\" | device=cuda\n"
             "1 s SaveImage images=l.IMAGE filename_prefix=\"ComfyUI\" | prefer=cpu parallel=none "
             "a.*->cpu\n");
  BOOST_TEST(bound.graph.name_of(0) == "node 'l' (LoadImage)");
  BOOST_TEST(bound.graph.name_of(kGraphInputs) == "the graph's inputs");
}

BOOST_AUTO_TEST_CASE(inputs_set_on_the_command_line_are_blamed_without_a_place) {
  Workflow workflow = parse_workflow(kTwoSinks, "scene.json");
  set_input(workflow, 1, "images", "5", "IMAGE");
  const std::string said = messages(engine::bind(workflow, test::test_catalog()));
  BOOST_TEST(
      said.starts_with("scene.json: node 's' (SaveImage), input 'images': expects a link to IMAGE, "
                       "got the integer 5."));
}

// count nodes, each reading the one before it, or all of them reading the first; then one sink that
// reads the last.
std::string many(std::size_t count, bool chain) {
  std::string text = R"({"0": {"class_type": "LoadImage", "inputs": {"image": "a"}})";
  for (std::size_t i = 1; i < count; ++i)
    text += cat(",\"", i, R"(": {"class_type": "test.pass", "inputs": {"value": [")",
                chain ? i - 1 : 0, "\", 0]}}");
  return text + cat(R"(, "s": {"class_type": "SaveImage", "inputs": {"images": [")", count - 1,
                    "\", 0]}}}");
}

BOOST_AUTO_TEST_CASE(deep_chains_and_wide_fans_bind_without_a_deep_stack) {
  const Bound chain = bind_text(many(100'000, true));
  BOOST_TEST(chain.problems.empty());
  BOOST_TEST(chain.graph.order.size() == 100'001u);
  const Bound fan = bind_text(many(10'000, false));
  BOOST_TEST(fan.graph.nodes.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_long_cycle_is_shown_in_short) {
  std::string text = many(1000, true);
  const std::string first = R"("LoadImage", "inputs": {"image": "a"})";
  text.replace(text.find(first), first.size(), R"("test.pass", "inputs": {"value": ["999", 0]})");
  const std::string said = messages(bind_text(text));
  BOOST_TEST(said.find("node '0' (test.pass) waits for itself: '0' -> '1' -> ") !=
             std::string::npos);
  BOOST_TEST(said.find("'15' -> (984 more) -> '0'. Remove one of these links.") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(sample_workflows_bind_to_the_graphs_beside_them) {
  Catalog catalog = test::test_catalog();
  test::list_sample_files(catalog);
  const std::vector<std::filesystem::path> paths = test::files_in("golden/workflows", ".json");
  BOOST_TEST(paths.size() >= 4u);
  for (const std::filesystem::path& path : paths) {
    const Bound bound =
        engine::bind(parse_workflow(test::read_text(path), path.filename().string()), catalog);
    BOOST_TEST(messages(bound) == "");
    const std::string expected =
        test::read_text(std::filesystem::path(path).replace_extension(".graph"));
    BOOST_TEST(graph_text(bound.graph) == expected, path.filename() << ": got\n"
                                                                    << graph_text(bound.graph));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::engine
