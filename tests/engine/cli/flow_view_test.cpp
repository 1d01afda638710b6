#include "engine/cli/flow_view.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/json.h"
#include "tests/support/refusal.h"

namespace heddle::cli {
namespace {

constexpr std::string_view kBare = R"({
  "1": {"class_type": "Load", "inputs": {"name": "a"}, "device": "cpu"},
  "2": {"class_type": "Text", "inputs": {"text": "x"}, "_meta": {"title": "prompt"}},
  "3": {"class_type": "Text", "inputs": {}, "_meta": {"title": "other"}},
  "4": {"class_type": "Save", "inputs": {"from": ["1", 0]}, "_meta": {"title": "1"}}
})";

BOOST_AUTO_TEST_SUITE(flow_view)

BOOST_AUTO_TEST_CASE(a_node_is_found_by_id_title_or_a_class_used_once) {
  const FlowView view(kBare);
  BOOST_TEST(view.find("1")->class_type == "Load");
  BOOST_TEST(view.find("prompt")->id == "2");
  BOOST_TEST(view.find("Save")->id == "4");
  BOOST_TEST((view.find("Text") == nullptr));
  BOOST_TEST((view.find("nobody") == nullptr));
  BOOST_TEST((view.find("") == nullptr));
}

BOOST_AUTO_TEST_CASE(the_wrapped_form_is_read_and_a_node_called_prompt_is_a_node) {
  const std::string nodes(kBare);
  BOOST_TEST(FlowView("{\"devices\": {}, \"prompt\": " + nodes + "}").find("Load")->id == "1");
  BOOST_TEST(FlowView(R"({"prompt": {"class_type": "Load"}})").find("Load")->id == "prompt");
}

BOOST_AUTO_TEST_CASE(it_says_what_the_workflow_gives_itself) {
  const FlowView view(kBare);
  BOOST_TEST(view.find("1")->gives("device"));
  BOOST_TEST(!view.find("2")->gives("device"));
  BOOST_TEST(view.find("4")->gives_input("from"));
  BOOST_TEST(!view.find("4")->gives_input("to"));
}

BOOST_AUTO_TEST_CASE(an_input_is_what_stands_behind_the_last_point) {
  BOOST_TEST(split_input_name("v1.5 model.seed").node == "v1.5 model");
  BOOST_TEST(split_input_name("v1.5 model.seed").input == "seed");
  for (const char* name : {"seed", ".seed", "node.", ""})
    BOOST_TEST(
        (test::refusal_of([&] { split_input_name(name); }).code() == core::Code::invalid_argument));
}

BOOST_AUTO_TEST_CASE(the_declared_type_decides_what_is_a_number) {
  const core::Json info = core::parse_json(R"({"Node": {"input": {
    "required": {"seed": ["INT", {"default": 0}], "cfg": ["FLOAT", {}], "text": ["STRING", {}],
                 "name": [["a", "b"], {}], "mode": ["COMBO", {"options": ["1..8"]}]},
    "optional": {"both": ["INT,FLOAT"]}, "hidden": {"id": "UNIQUE_ID"}}}})",
                                           "info");
  BOOST_TEST((declared_kind(info, "seed") == InputKind::integer));
  BOOST_TEST((declared_kind(info, "cfg") == InputKind::real));
  BOOST_TEST((declared_kind(info, "both") == InputKind::real));
  for (const char* name : {"text", "name", "mode", "id"})
    BOOST_TEST((declared_kind(info, name) == InputKind::other));
  BOOST_TEST((declared_kind(info, "nothing") == std::nullopt));
  BOOST_TEST((declared_kind(core::Json(), "seed") == std::nullopt));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::cli
