// A workflow read without an engine: what it says of itself, and what an engine adds.
#include <boost/test/unit_test.hpp>

#include "tests/support/engine_fixture.h"

using namespace heddle;
using test::engine_refusal;

namespace {

constexpr std::string_view kNodes = R"({
  "1": {"class_type": "Load", "inputs": {"name": "a"}, "device": "cpu"},
  "2": {"class_type": "test.add", "inputs": {"a": 1}, "_meta": {"title": "prompt"}},
  "3": {"class_type": "test.add", "inputs": {}, "_meta": {"title": "other"}, "parallel": "layers"},
  "4": {"class_type": "Save", "inputs": {"from": ["1", 0]}, "_meta": {"title": "1"}}
})";

}  // namespace

BOOST_AUTO_TEST_SUITE(workflow_without_engine)

BOOST_AUTO_TEST_CASE(a_node_is_found_by_id_title_or_a_class_used_once) {
  const Workflow flow = Workflow::parse(kNodes);
  BOOST_TEST(flow.find("1")->class_type == "Load");
  BOOST_TEST(flow.find("prompt")->id == "2");
  BOOST_TEST(flow.find("Save")->id == "4");
  for (const char* name : {"test.add", "nobody", ""}) BOOST_TEST(!flow.find(name), name);
}

BOOST_AUTO_TEST_CASE(the_longest_node_that_is_there_divides_the_name_of_an_input) {
  const auto inputs_of = [](std::string_view name, std::string_view node) {
    Workflow flow = Workflow::parse(R"({"3": {"class_type": "Load"}, "v1": {"class_type": "A"},
      "v1.5": {"class_type": "B", "_meta": {"title": "a.b"}}})");
    flow.set(name, "1");
    return flow.find(node)->inputs;
  };
  using Names = std::vector<std::string>;
  BOOST_TEST((inputs_of("3.size.width", "3") == Names{"size.width"}));
  BOOST_TEST((inputs_of("Load.size.width", "3") == Names{"size.width"}));
  BOOST_TEST((inputs_of("v1.5.seed", "v1.5") == Names{"seed"}));
  BOOST_TEST((inputs_of("v1.6.seed", "v1") == Names{"6.seed"}));
  BOOST_TEST((inputs_of("a.b.size.width", "v1.5") == Names{"size.width"}));
  BOOST_TEST(engine_refusal([&] {
               inputs_of("nobody.size.width", "3");
             }).find("no node 'nobody.size'") != std::string::npos);
  BOOST_TEST(engine_refusal([&] { inputs_of("3", "3"); }).find("say NODE.INPUT") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(it_says_what_the_workflow_gives_itself) {
  const Workflow flow = Workflow::parse(
      "{\"devices\": {\"cpu:0\": {\"budget\": \"1MiB\"}, \"cpu:2\": {\"budget\": 5}, \"gpu:1\": "
      "{}}, \"prompt\": " +
      std::string(kNodes) + "}");
  BOOST_TEST(flow.find("1")->device == "cpu");
  BOOST_TEST(flow.find("2")->device == "");
  BOOST_TEST(flow.find("3")->parallel == "layers");
  BOOST_TEST((flow.find("4")->inputs == std::vector<std::string>{"from"}));
  BOOST_TEST(
      (flow.budgets() == std::map<std::string, std::uint64_t>{{"cpu:0", 1 << 20}, {"cpu:2", 5}}));
  BOOST_TEST(Workflow::parse(kNodes).budgets().empty());
}

BOOST_AUTO_TEST_CASE(it_may_be_run_for_some_of_its_outputs) {
  Engine engine(test::engine_options());
  Workflow flow = engine.parse(R"({
    "1": {"class_type": "test.add", "inputs": {"a": 1, "b": 2}},
    "2": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}, "_meta": {"title": "first"}},
    "3": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}},
    "4": {"class_type": "PreviewAny", "inputs": {"source": ["1", 0]}}})");
  const auto outputs = [&] { return engine.check(flow).outputs; };
  using Ids = std::vector<std::string>;
  BOOST_TEST(outputs() == (Ids{"2", "3", "4"}));
  flow.only({"first", "PreviewAny"});
  BOOST_TEST(outputs() == (Ids{"2", "4"}));
  BOOST_TEST(engine.plan(flow).find("test.keep") != std::string::npos);
  flow.only({"4"});
  BOOST_TEST(outputs() == (Ids{"4"}));
  BOOST_TEST(engine.plan(flow).find("test.keep") == std::string::npos);
  BOOST_TEST(engine.start(flow).wait().ui().find(R"("4")") != std::string::npos);
  BOOST_TEST(engine.parse(flow.text()).text() == flow.text());
  BOOST_TEST(engine.check(engine.parse(flow.text())).outputs == (Ids{"4"}));
  BOOST_TEST(engine_refusal([&] { flow.only({"lost"}, "--only"); }).starts_with("--only: "));
  BOOST_TEST(outputs() == (Ids{"4"}));
  flow.only({"1"});
  BOOST_TEST(engine_refusal([&] { engine.start(flow); }).find("saves or shows nothing") !=
             std::string::npos);
  flow.only({});
  BOOST_TEST(outputs() == (Ids{"2", "3", "4"}));
}

BOOST_AUTO_TEST_CASE(an_engine_adds_the_types_of_its_classes) {
  const Engine engine(test::engine_options());
  BOOST_TEST(engine.input_type("test.add", "a") == "INT");
  BOOST_TEST(engine.input_type("test.add", "c") == "");
  BOOST_TEST(engine.input_type("nobody", "a") == "");
  Workflow flow = Workflow::parse(kNodes);
  flow.set("2.c", "1");  // nobody knows yet that there is none
  Workflow adopted = engine.adopt(flow);
  BOOST_TEST(engine_refusal([&] { adopted.set("2.c", "1"); }).find("has no input 'c'") !=
             std::string::npos);
  BOOST_TEST(engine_refusal([&] { engine.adopt({}); }).find("this workflow is empty") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_the_interface_saved_is_converted_by_an_engine) {
  const std::string_view saved = R"({"nodes": [
    {"id": 1, "type": "test.add", "title": "sum", "widgets_values": [2, 3]},
    {"id": 2, "type": "nobody", "title": "lost", "widgets_values": [5]}], "links": []})";
  Workflow flow = Workflow::parse(saved, "w.json");
  BOOST_TEST(!flow.find("sum"));
  BOOST_TEST(engine_refusal([&] { flow.set("1.a", "4"); }).find("Give it to Engine::adopt first") !=
             std::string::npos);
  const Engine engine(test::engine_options());
  BOOST_TEST(engine_refusal([&] { engine.check(flow); }).find("Engine::adopt") !=
             std::string::npos);
  Workflow adopted = engine.adopt(flow);
  adopted.set("sum.a", "4");
  BOOST_TEST(adopted.text().find(R"("inputs":{"a":4,"b":3})") != std::string::npos);
  BOOST_TEST(engine.parse(saved).find("sum")->class_type == "test.add");
  // The saved form goes into pictures, as from ComfyUI.
  BOOST_TEST(adopted.text().find(R"("extra_pnginfo":{"workflow":{"nodes":[)") != std::string::npos);
  BOOST_TEST(engine_refusal([&] { engine.convert(flow); }).find("node '2' 'lost' (nobody)") !=
             std::string::npos);
  const std::string converted = engine.convert(
      flow, {R"({"nobody": {"input": {"required": {"n": ["INT", {}]}}, "output": []}})"});
  BOOST_TEST(converted.find("\"n\": 5") != std::string::npos);
  BOOST_TEST(Workflow::parse(converted).find("lost")->id == "2");
}

BOOST_AUTO_TEST_CASE(a_video_gives_the_workflow_in_its_tags) {
  for (const char* name : {"tagged.mp4", "tagged.webm"}) {
    const Workflow flow =
        Workflow::load(std::filesystem::path(HEDDLE_TESTS_DIR) / "engine/files/videos" / name);
    BOOST_TEST(flow.text().find(R"("class_type":"A")") != std::string::npos, flow.text());
  }
}

BOOST_AUTO_TEST_SUITE_END()
