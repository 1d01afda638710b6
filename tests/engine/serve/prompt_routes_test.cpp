// /prompt, /queue, /interrupt and /free, under both names.
#include <regex>

#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::Json;

namespace {

std::string error_type(const Reply& reply) {
  BOOST_TEST(reply.status == 400, reply.body);
  const Json answer = reply.json();
  const Json& error = answer.at("error");
  for (const char* key : {"message", "details", "extra_info"})
    BOOST_TEST((error.find(key) != nullptr), key);
  return error.at("type").as_string();
}

const char* const kIds[] = {"00000000-0000-4000-8000-000000000001",
                            "00000000-0000-4000-8000-000000000002"};

}  // namespace

BOOST_AUTO_TEST_SUITE(prompt_routes)

BOOST_FIXTURE_TEST_CASE(a_prompt_is_taken_whatever_its_type_is_called, Serving) {
  const std::string body = "{\"prompt\": " + showing(5) + "}";
  for (const char* target : {"/prompt", "/api/prompt"}) {
    const Reply reply =
        ask(port(), "POST", target, body,
            "Host: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n");
    BOOST_TEST_REQUIRE(reply.status == 200, reply.body);
    static const std::regex uuid("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");
    BOOST_TEST(std::regex_match(reply.json().at("prompt_id").as_string(), uuid));
    BOOST_TEST(reply.json().at("node_errors").size() == 0u);
  }
}

BOOST_FIXTURE_TEST_CASE(numbers_say_who_is_first, Serving) {
  service->queue().pause_all(true);
  const auto number = [&](const std::string& more) {
    return post("/prompt", "{\"prompt\": " + showing(1) + more + "}")
        .json()
        .at("number")
        .as_double();
  };
  BOOST_TEST(number("") == 0);
  BOOST_TEST(number("") == 1);
  BOOST_TEST(number(", \"front\": true") == -2);
  BOOST_TEST(number(", \"number\": 0.5, \"front\": true") == 0.5);
  std::vector<double> order;
  const Json queue = get("/queue").json();
  for (const Json& item : queue.at("queue_pending").as_array())
    order.push_back(item.at(std::size_t{0}).as_double());
  BOOST_TEST(order == (std::vector<double>{-2, 0, 0.5, 1}), boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(what_cannot_run_is_refused_in_comfyuis_words, Serving) {
  const auto type = [&](const std::string& body) { return error_type(post("/prompt", body)); };
  BOOST_TEST(type("{}") == "no_prompt");
  BOOST_TEST(type("{\"prompt\": [1]}") == "no_prompt");
  BOOST_TEST(type("{\"prompt\": {}}") == "prompt_no_outputs");
  BOOST_TEST(type("{\"prompt\": {\"1\": {\"class_type\": \"t.Number\", \"inputs\": {}}}}") ==
             "prompt_no_outputs");
  BOOST_TEST(type("{\"prompt\": {\"1\": {\"class_type\": \"NoSuchNode\", \"inputs\": {}}}}") ==
             "missing_node_type");
  const Reply nameless =
      post("/prompt", "{\"prompt\": {\"7\": {\"inputs\": {}, \"_meta\": {\"title\": \"Mine\"}}}}");
  BOOST_TEST(error_type(nameless) == "missing_node_type");
  const Json nameless_answer = nameless.json();
  const Json& extra = nameless_answer.at("error").at("extra_info");
  BOOST_TEST(extra.at("node_id").as_string() == "7");
  BOOST_TEST(extra.at("class_type").is_null());
  BOOST_TEST(extra.at("node_title").as_string() == "Mine");
  BOOST_TEST(type("{\"prompt\": " + showing(1) + ", \"prompt_id\": \"mine\"}") ==
             "invalid_prompt_id");
  BOOST_TEST(type("{\"prompt\": " + showing(1) + ", \"partial_execution_targets\": []}") ==
             "prompt_no_outputs");
  BOOST_TEST(type("{\"prompt\": " + showing(1) + ", \"partial_execution_targets\": [\"1\"]}") ==
             "prompt_no_outputs");
  BOOST_TEST(post("/prompt", "no json").status == 400);
  BOOST_TEST(post("/prompt", "[]").status == 400);
  BOOST_TEST(get("/history").json().size() == 0u);
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_read_is_an_invalid_prompt, Serving) {
  for (const char* node : {R"({"class_type": "t.Show", "inputs": {}, "device": 5})",
                           R"({"class_type": "t.Show", "inputs": 5})"}) {
    const Reply reply = post("/prompt", engine::cat("{\"prompt\": {\"1\": ", node, "}}"));
    BOOST_TEST(error_type(reply) == "invalid_prompt");
    BOOST_TEST(reply.json().at("node_errors").size() == 0u);
  }
}

BOOST_FIXTURE_TEST_CASE(each_faulty_node_is_named_with_its_errors, Serving) {
  const Reply reply =
      post("/prompt",
           "{\"prompt\": {\"1\": {\"class_type\": \"t.Number\", \"inputs\": {\"value\": \"x\"}}, "
           "\"2\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"1\", 0]}}, "
           "\"3\": {\"class_type\": \"t.Show\", \"inputs\": {}}}}");
  BOOST_TEST(error_type(reply) == "prompt_outputs_failed_validation");
  const Json answer = reply.json();
  const Json& number = answer.at("node_errors").at("1");
  BOOST_TEST(number.at("class_type").as_string() == "t.Number");
  BOOST_TEST(number.at("dependent_outputs").at(std::size_t{0}).as_string() == "2");
  const Json& error = number.at("errors").at(std::size_t{0});
  BOOST_TEST(error.at("type").as_string() == "invalid_input_type");
  BOOST_TEST(error.at("extra_info").at("input_name").as_string() == "value");
  const Json& show = answer.at("node_errors").at("3");
  BOOST_TEST(show.at("errors").at(std::size_t{0}).at("type").as_string() ==
             "required_input_missing");
  BOOST_TEST(answer.at("node_errors").find("2") == nullptr);  // it is only downstream
}

BOOST_FIXTURE_TEST_CASE(outputs_that_are_right_run_beside_wrong_ones, Serving) {
  const Reply reply =
      post("/prompt",
           "{\"prompt\": {\"1\": {\"class_type\": \"t.Number\", \"inputs\": {\"value\": 4}}, "
           "\"2\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"1\", 0]}}, "
           "\"3\": {\"class_type\": \"t.Show\", \"inputs\": {}}}}");
  BOOST_TEST_REQUIRE(reply.status == 200, reply.body);
  BOOST_TEST(reply.json().at("node_errors").size() == 1u);
  const Json entry = ended(reply.json().at("prompt_id").as_string());
  BOOST_TEST(entry.at("status").at("status_str").as_string() == "success");
  BOOST_TEST(engine::write_json(entry.at("outputs")) == "{\"2\":{\"text\":[4]}}");
  BOOST_TEST(engine::write_json(entry.at("prompt").at(4)) == "[\"2\"]");
}

// Whatever is wrong with an input refuses what depends on it, and nothing else.
BOOST_FIXTURE_TEST_CASE(a_bad_input_refuses_only_what_depends_on_it, Serving) {
  for (const char* inputs : {R"("value": ["1", 0, 1])", R"("value": [])", R"("value": [null, 0])",
                             R"("value": ["1", -1])", R"("value": ["9", 0])"}) {
    const Reply reply =
        post("/prompt",
             engine::cat(R"({"prompt": {"1": {"class_type": "t.Number", "inputs": {"value": 4}}, )",
                         R"("2": {"class_type": "t.Show", "inputs": {"value": ["1", 0]}}, )",
                         R"("3": {"class_type": "t.Gate", "inputs": {)", inputs, "}}, ",
                         R"("4": {"class_type": "t.Show", "inputs": {"value": ["3", 0]}}}})"));
    BOOST_TEST_REQUIRE(reply.status == 200, inputs << ": " << reply.body);
    const Json errors = reply.json().at("node_errors");
    BOOST_TEST(errors.size() == 1u, inputs);
    BOOST_TEST(engine::write_json(errors.at("3").at("dependent_outputs")) == "[\"4\"]", inputs);
    const Json entry = ended(reply.json().at("prompt_id").as_string());
    BOOST_TEST(engine::write_json(entry.at("outputs")) == "{\"2\":{\"text\":[4]}}", inputs);
  }
}

BOOST_FIXTURE_TEST_CASE(the_outputs_that_are_wanted_run_alone, Serving) {
  const std::string two =
      "{\"1\": {\"class_type\": \"t.Number\", \"inputs\": {\"value\": 4}}, "
      "\"2\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"1\", 0]}}, "
      "\"3\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"1\", 0]}}}";
  // Others in the list are passed over.
  const std::string id = submit(two, ", \"partial_execution_targets\": [\"3\", \"1\", \"none\"]");
  BOOST_TEST(engine::write_json(ended(id).at("outputs")) == "{\"3\":{\"text\":[4]}}");
}

BOOST_FIXTURE_TEST_CASE(ids_are_the_clients_own_and_used_once, Serving) {
  const std::string more = engine::cat(", \"prompt_id\": \"", kIds[0], "\"");
  BOOST_TEST(submit(showing(1), more) == kIds[0]);
  BOOST_TEST(error_type(post("/prompt", "{\"prompt\": " + showing(1) + more + "}")) ==
             "invalid_prompt_id");
}

BOOST_FIXTURE_TEST_CASE(secrets_are_not_kept, Serving) {
  service->queue().pause_all(true);
  submit(showing(1),
         ", \"client_id\": \"tab\", \"extra_data\": {\"extra_pnginfo\": {\"workflow\": "
         "{\"a\": 5.0}}, \"auth_token_comfy_org\": \"s\", \"api_key_comfy_org\": \"s\"}");
  const Json queue = get("/queue").json();
  const Json& extra = queue.at("queue_pending").at(std::size_t{0}).at(3);
  BOOST_TEST(engine::write_json(extra.at("extra_pnginfo")) == "{\"workflow\":{\"a\":5.0}}");
  BOOST_TEST(extra.at("client_id").as_string() == "tab");
  BOOST_TEST(extra.at("create_time").as_int64() > 1'600'000'000'000);
  BOOST_TEST(extra.size() == 3u);
}

BOOST_FIXTURE_TEST_CASE(the_queue_is_shown_as_comfyui_shows_it, Serving) {
  const std::string first = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  service->queue().pause_all(true);
  const std::string second = submit(showing(7));
  for (const char* target : {"/queue", "/api/queue"}) {
    const Json queue = get(target).json();
    const Json& item = queue.at("queue_pending").at(std::size_t{0});
    BOOST_TEST(item.size() == 5u);
    BOOST_TEST(item.at(std::size_t{0}).as_double() == 1);
    BOOST_TEST(item.at(1).as_string() == second);
    BOOST_TEST((item.at(2) == engine::parse_json(showing(7), "prompt")));
    BOOST_TEST(engine::write_json(item.at(4)) == "[\"2\"]");
    BOOST_TEST(queue.at("queue_running").at(std::size_t{0}).at(1).as_string() == first);
  }
  for (const char* target : {"/prompt", "/api/prompt"})
    BOOST_TEST(get(target).body == "{\"exec_info\":{\"queue_remaining\":2}}");
  post("/interrupt", "");
}

BOOST_FIXTURE_TEST_CASE(waiting_prompts_are_deleted_and_running_ones_are_not, Serving) {
  const std::string runs = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  service->queue().pause_all(true);
  const std::string a = submit(showing(1)), b = submit(showing(2)), c = submit(showing(3));
  const std::string body = engine::cat("{\"delete\": [\"", b, "\", \"", runs, "\", \"none\"]}");
  const Reply reply = post("/queue", body);
  BOOST_TEST(reply.status == 200);
  BOOST_TEST(reply.body == "");
  BOOST_TEST(pending() == 2u);
  BOOST_TEST(running() == 1u);
  BOOST_TEST(get("/history").json().size() == 0u);  // nothing of it has run
  BOOST_TEST(post("/api/queue", "{\"clear\": true}").status == 200);
  BOOST_TEST(pending() == 0u);
  BOOST_TEST(running() == 1u);
  BOOST_TEST(post("/queue", "no json").status == 400);
  post("/interrupt", "");
}

BOOST_FIXTURE_TEST_CASE(what_runs_is_interrupted_by_id_or_all_of_it, Serving) {
  const std::string a = submit(meeting(1, 3)), b = submit(meeting(2, 3));
  wait_until([&] { return running() == 2; });
  service->queue().pause_all(true);
  const std::string waits = submit(showing(1));
  // Neither of another one nor of one that waits.
  for (const std::string& other : {std::string(kIds[0]), waits})
    BOOST_TEST(post("/interrupt", engine::cat("{\"prompt_id\": \"", other, "\"}")).status == 200);
  BOOST_TEST(running() == 2u);
  BOOST_TEST(post("/api/interrupt", engine::cat("{\"prompt_id\": \"", a, "\"}")).status == 200);
  const Json status = ended(a).at("status");
  BOOST_TEST(status.at("status_str").as_string() == "error");
  BOOST_TEST(!status.at("completed").as_bool());
  BOOST_TEST(running() == 1u);
  BOOST_TEST(post("/interrupt", "no json").status == 200);  // as if it said nothing
  ended(b);
  BOOST_TEST(running() == 0u);
  BOOST_TEST(pending() == 1u);
}

BOOST_FIXTURE_TEST_CASE(memory_is_freed_when_it_is_asked_for, Serving) {
  const auto cached = [&] {  // nodes of a prompt that had not to run
    const Json messages = ended(submit(showing(1))).at("status").at("messages");
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (messages.at(i).at(0).as_string() == "execution_cached")
        return messages.at(i).at(1).at("nodes").size();
    return std::size_t(0);
  };
  cached();
  BOOST_TEST(cached() == 1u);
  BOOST_TEST(post("/free", "{\"unload_models\": true}").status == 200);
  BOOST_TEST(cached() == 1u);  // results are no models
  for (const char* target : {"/free", "/api/free"}) {
    BOOST_TEST(post(target, "{\"unload_models\": true, \"free_memory\": true}").status == 200);
    BOOST_TEST(cached() == 0u);
    BOOST_TEST(cached() == 1u);
  }
  BOOST_TEST(post("/free", "no json").status == 400);
}

BOOST_AUTO_TEST_CASE(a_full_queue_asks_to_come_back) {
  const Serving serving([](engine::ServiceOptions& options) { options.queue.capacity = 1; });
  serving.service->queue().pause_all(true);
  serving.submit(showing(1));
  const Reply reply = serving.post("/prompt", "{\"prompt\": " + showing(2) + "}");
  BOOST_TEST(reply.status == 503);
  BOOST_TEST(reply.header("retry-after") == "10");
}

BOOST_AUTO_TEST_SUITE_END()
