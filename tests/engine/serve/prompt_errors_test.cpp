// Each error that a prompt can have, as ComfyUI's clients read it: type, message, details, and what
// is said beside them.
#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

struct Wrong {
  const char* nodes;  // before node "2", which shows what "1" makes
  const char* node;   // that is blamed
  const char *type, *message, *details;
  std::vector<std::string> extra;  // names
};

const std::vector<Wrong> kWrong = {
    {R"("1": {"class_type": "t.Gate", "inputs": {}})",
     "1",
     "required_input_missing",
     "Required input is missing",
     "value",
     {"input_name"}},
    {R"("1": {"class_type": "t.Gate", "inputs": {"value": ["7", 0, 1]}})",
     "1",
     "bad_linked_input",
     "Bad linked input, must be a length-2 list of [node_id, slot_index]",
     "value",
     {"input_name", "input_config", "received_value"}},
    {R"("1": {"class_type": "t.Gate", "inputs": {"value": [1.5, 0]}})",
     "1",
     "exception_during_inner_validation",
     "Exception when validating inner node",
     "1.5",
     {"input_name", "input_config", "exception_message", "exception_type", "traceback",
      "linked_node"}},
    {R"("1": {"class_type": "t.Grows", "inputs": {"mode": "plain", "items.item0": 1, "rows.3.x": 1}})",
     "1",
     "invalid_dynamic_input",
     "Invalid dynamic input",
     "rows.3.x: its rows are called rows.0.NAME to rows.2.NAME",
     {"input_name"}},
    {R"("0": {"class_type": "t.Typed", "inputs": {}}, )"
     R"("1": {"class_type": "t.Wants", "inputs": {"real": ["0", 4]}})",
     "1",
     "return_type_mismatch",
     "Return type mismatch between linked nodes",
     "real, received_type(INT) mismatch input_type(FLOAT)",
     {"input_name", "input_config", "received_type", "linked_node"}},
    {R"("1": {"class_type": "t.Wants", "inputs": {"whole": "1.5"}})",
     "1",
     "invalid_input_type",
     "Failed to convert an input value to a INT value",
     "whole, 1.5, invalid literal for int() with base 10: '1.5'",
     {"input_name", "input_config", "received_value", "exception_message"}},
    {R"("1": {"class_type": "t.Judge", "inputs": {"b": -1}})",
     "1",
     "value_smaller_than_min",
     "Value -1 smaller than min of 0",
     "b",
     {"input_name", "input_config", "received_value"}},
    {R"("1": {"class_type": "t.Judge", "inputs": {"b": 11}})",
     "1",
     "value_bigger_than_max",
     "Value 11 bigger than max of 10",
     "b",
     {"input_name", "input_config", "received_value"}},
    {R"("1": {"class_type": "t.Wants", "inputs": {"pick": "three"}})",
     "1",
     "value_not_in_list",
     "Value not in list",
     "pick: 'three' not in ['one', 'two']",
     {"input_name", "input_config", "received_value"}},
    {R"("1": {"class_type": "t.Judge", "inputs": {"a": 13}})",
     "1",
     "custom_validation_failed",
     "Custom validation failed for node",
     "a - 13 is refused, linked: ",
     {"input_name"}},
    {R"("1": {"class_type": "t.Gate", "inputs": {"value": ["7", 0]}})",
     "1",
     "exception_during_inner_validation",
     "Exception when validating inner node",
     "'7'",
     {"input_name", "input_config", "exception_message", "exception_type", "traceback",
      "linked_node"}},
    {R"("1": {"class_type": "t.Add", "inputs": {"a": ["1", 0]}})",
     "1",
     "dependency_cycle",
     "Dependency cycle detected",
     "1 (t.Add) -> 1 (t.Add)",
     {"node_id", "cycle_nodes"}},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(prompt_errors)

BOOST_FIXTURE_TEST_CASE(each_error_of_a_node_has_comfyuis_shape, Serving) {
  for (const Wrong& wrong : kWrong) {
    const std::string show = R"(, "2": {"class_type": "t.Show", "inputs": {"value": ["1", 0]}})";
    const Reply reply = post("/prompt", cat("{\"prompt\": {", wrong.nodes, show, "}}"));
    BOOST_TEST_REQUIRE(reply.status == 400, wrong.type << ": " << reply.body);
    const Json answer = reply.json();
    BOOST_TEST(answer.at("error").at("type").as_string() == "prompt_outputs_failed_validation");
    BOOST_TEST(answer.at("error").at("message").as_string() == "Prompt outputs failed validation");
    BOOST_TEST_REQUIRE((answer.at("node_errors").find(wrong.node) != nullptr), reply.body);
    const Json& node = answer.at("node_errors").at(wrong.node);
    BOOST_TEST(node.at("class_type").as_string().starts_with("t."));
    BOOST_TEST(node.at("dependent_outputs").is_array());
    const Json& error = node.at("errors").at(std::size_t{0});
    BOOST_TEST(error.at("type").as_string() == wrong.type);
    BOOST_TEST(error.at("message").as_string() == wrong.message);
    BOOST_TEST(error.at("details").as_string() == wrong.details);
    std::vector<std::string> names;
    for (const Json::Member& member : error.at("extra_info").members()) names.push_back(member.key);
    BOOST_TEST(names == wrong.extra, boost::test_tools::per_element());
    const Json* const config = error.at("extra_info").find("input_config");
    BOOST_TEST((config == nullptr || config->size() == 2u), wrong.type);
  }
}

// What is wrong with the output itself, not with what it needs.
BOOST_FIXTURE_TEST_CASE(errors_of_outputs_are_told_in_the_first_one, Serving) {
  const auto answer = [&](const std::string& inputs) {
    const Reply reply =
        post("/prompt", cat(R"({"prompt": {"1": {"class_type": "t.Number", "inputs": {}}, )",
                            R"("2": {"class_type": "t.Show", "inputs": {)", inputs, R"(}}}})"));
    BOOST_TEST_REQUIRE(reply.status == 400, reply.body);
    return reply.json();
  };
  const Json missing = answer("");
  BOOST_TEST(missing.at("error").at("details").as_string() == "Required input is missing: value");
  BOOST_TEST(engine::write_json(missing.at("error").at("extra_info")) == "{}");
  BOOST_TEST(engine::write_json(missing.at("node_errors").at("2").at("dependent_outputs")) ==
             "[\"2\"]");
  const Json slot = answer(R"("value": ["1", 3])");
  const Json& error = slot.at("node_errors").at("2").at("errors").at(std::size_t{0});
  BOOST_TEST(error.at("type").as_string() == "exception_during_validation");
  BOOST_TEST(error.at("details").as_string() == "tuple index out of range");
  BOOST_TEST(error.at("extra_info").at("exception_type").as_string() == "IndexError");
  BOOST_TEST(error.at("extra_info").at("traceback").is_array());
}

BOOST_FIXTURE_TEST_CASE(a_long_list_of_choices_is_counted, Serving) {
  std::filesystem::create_directories(folder / "models/vae");
  for (int i = 0; i < 21; ++i) folder.write(cat("models/vae/", i, ".safetensors"), "x");
  const Reply reply = post(
      "/prompt", R"({"prompt": {"1": {"class_type": "VAELoader", "inputs": {"vae_name": "x"}},)"
                 R"( "2": {"class_type": "t.Show", "inputs": {"value": ["1", 0]}}}})");
  BOOST_TEST_REQUIRE(reply.status == 400, reply.body);
  const Json answer = reply.json();
  const Json& error = answer.at("node_errors").at("1").at("errors").at(std::size_t{0});
  BOOST_TEST(error.at("type").as_string() == "value_not_in_list");
  const std::string details = error.at("details").as_string();
  BOOST_TEST(details.starts_with("vae_name: 'x' not in (list of length 2"), details);
  BOOST_TEST(error.at("extra_info").at("input_config").is_null());
}

BOOST_AUTO_TEST_SUITE_END()
