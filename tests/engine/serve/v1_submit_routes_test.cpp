// POST /v1/jobs, /v1/validate and /v1/plan.
#include "tests/engine/serve/v1_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

// As the interface saves it: shows a number that stands in a widget.
const char* const kSaved =
    "{\"last_node_id\": 2, \"version\": 0.4, \"nodes\": ["
    "{\"id\": 1, \"type\": \"t.Number\", \"mode\": 0, \"inputs\": [], \"outputs\": [{\"name\": "
    "\"INT\", \"type\": \"INT\", \"links\": [1]}], \"widgets_values\": [4]},"
    "{\"id\": 2, \"type\": \"t.Show\", \"mode\": 0, \"inputs\": [{\"name\": \"value\", \"type\": "
    "\"INT\", \"link\": 1}], \"outputs\": [], \"widgets_values\": []}],"
    "\"links\": [[1, 1, 0, 2, 0, \"INT\"]]}";

// Shows the sum of two numbers.
const char* const kTwoNumbers =
    "{\"1\": {\"class_type\": \"t.Number\", \"inputs\": {\"value\": 1}}, \"2\": {\"class_type\": "
    "\"t.Number\", \"inputs\": {\"value\": 4}, \"_meta\": {\"title\": \"Other\"}}, \"3\": "
    "{\"class_type\": \"t.Add\", \"inputs\": {\"a\": [\"1\", 0], \"b\": [\"2\", 0]}}, \"4\": "
    "{\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"3\", 0]}}}";

std::string with_workflow(const std::string& workflow, const std::string& more = "") {
  return cat("{\"workflow\": ", workflow, more, "}");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(v1_submit_routes)

BOOST_FIXTURE_TEST_CASE(a_workflow_may_come_as_the_interface_saves_it, V1Serving) {
  const std::string id = submit_v1(kSaved);
  wait_for(id, "done");
  const Json done = job(id);
  BOOST_TEST(done.at("outputs").at(std::size_t{0}).at("value").as_int64() == 4);
  const Json& workflow = done.at("workflow");
  BOOST_TEST(workflow.at("prompt").at("1").at("class_type").as_string() == "t.Number");
  const Json& drawn = workflow.at("extra_data").at("extra_pnginfo").at("workflow");
  BOOST_TEST((drawn == engine::parse_json(kSaved, "saved")));
}

BOOST_FIXTURE_TEST_CASE(inputs_are_set, V1Serving) {
  const std::string id = submit_v1(showing(1), ", \"set\": {\"t.Number.value\": 8}");
  wait_for(id, "done");
  BOOST_TEST(job(id).at("outputs").at(std::size_t{0}).at("value").as_int64() == 8);
  const auto refuse = [&](int status, const std::string& more) {
    return refused(status, "POST", "/v1/jobs", with_workflow(showing(1), more));
  };
  BOOST_TEST(refuse(422, ", \"set\": {\"t.Numer.value\": 8}") == "not_found");
  BOOST_TEST(refuse(400, ", \"set\": 8") == "invalid_argument");
}

BOOST_FIXTURE_TEST_CASE(only_what_is_wanted_runs, V1Serving) {
  const std::string two =
      "{\"1\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": 1}}, \"2\": {\"class_type\": "
      "\"t.Show\", \"inputs\": {\"value\": 2}}}";
  const std::string id = submit_v1(two, ", \"only\": [\"2\"]");
  wait_for(id, "done");
  const Json done = job(id);
  BOOST_TEST_REQUIRE(done.at("outputs").size() == 1u);
  BOOST_TEST(done.at("outputs").at(std::size_t{0}).at("node").as_string() == "2");
}

BOOST_FIXTURE_TEST_CASE(repeats_make_a_batch, V1Serving) {
  expect(200, "POST", "/v1/queue/pause");
  const Json made = expect(201, "POST", "/v1/jobs", with_workflow(showing(1), ", \"repeats\": 3"));
  BOOST_TEST(made.at("jobs").size() == 3u);
  const std::string batch = made.at("batch").as_string();
  BOOST_TEST(listed("/v1/jobs?batch=" + batch, "jobs").size() == 3u);
  const std::string front = submit_v1(showing(1), ", \"front\": true");
  BOOST_TEST(listed("/v1/queue", "waiting").front() == front);
}

// What jobs of a batch show, in the order of their submission.
std::string shown(const V1Serving& serving, const Json& made) {
  std::string text;
  for (const Json& job : made.at("jobs").as_array()) {
    const std::string& id = job.at("id").as_string();
    serving.wait_for(id, "done");
    text += cat(serving.job(id).at("outputs").at(std::size_t{0}).at("value").as_int64(), " ");
  }
  return text;
}

BOOST_FIXTURE_TEST_CASE(a_sweep_makes_a_job_of_each_value, V1Serving) {
  const auto swept = [&](const std::string& sweep) {
    const Json made =
        expect(201, "POST", "/v1/jobs", with_workflow(kTwoNumbers, cat(", \"sweep\": ", sweep)));
    BOOST_TEST(!made.at("batch").is_null());
    return shown(*this, made);
  };
  // By id, by class; the title of a node serves as well.
  BOOST_TEST(swept("{\"inputs\": {\"1.value\": [1, 2], \"Other.value\": [10, 20]}}") ==
             "11 21 12 22 ");
  BOOST_TEST(swept("{\"mode\": \"zipped\", \"inputs\": {\"1.value\": [1, 2], \"2.value\": "
                   "[10, 20]}}") == "11 22 ");
  BOOST_TEST(swept("{\"repeats\": 2, \"inputs\": {\"1.value\": [1, 2]}}, \"set\": {\"2.value\": "
                   "5}") == "6 6 7 7 ");
  BOOST_TEST(swept("{\"inputs\": {\"1.value\": [1, 2]}}, \"repeats\": 2") == "5 5 6 6 ");
}

BOOST_FIXTURE_TEST_CASE(a_batch_is_cancelled_as_one, V1Serving) {
  expect(200, "POST", "/v1/queue/pause");
  const std::string other = submit_v1(showing(1));
  const Json made = expect(
      201, "POST", "/v1/jobs",
      with_workflow(showing(1),
                    ", \"sweep\": {\"inputs\": {\"1.value\": [3, 4, 5]}}, \"batch\": \"b\""));
  BOOST_TEST(made.at("batch").as_string() == "b");
  const Json gone = expect(200, "POST", "/v1/cancel", "{\"batch\": \"b\"}");
  BOOST_TEST(gone.at("cancelled").size() == 3u);
  BOOST_TEST(state(other) == "pending");
}

// All of a batch comes, or none: one of its values may be no good.
BOOST_FIXTURE_TEST_CASE(a_sweep_is_refused_whole, V1Serving) {
  const auto refuse = [&](int status, const std::string& more) {
    return refused(status, "POST", "/v1/jobs", with_workflow(showing(1), more));
  };
  BOOST_TEST(refuse(422, ", \"sweep\": {\"inputs\": {\"1.value\": [1, \"x\"]}}") ==
             "invalid_workflow");
  BOOST_TEST(refuse(400, ", \"sweep\": {\"inputs\": {\"9.value\": [1]}}") == "invalid_argument");
  BOOST_TEST(refuse(400, ", \"sweep\": {\"inputs\": {\"1.value\": []}}") == "invalid_argument");
  BOOST_TEST(refuse(400, ", \"sweep\": {\"inputs\": {\"1.value\": [1, 2]}}, \"id\": \"x\"") ==
             "invalid_argument");
  BOOST_TEST(refuse(400, ", \"sweep\": {\"repeats\": 2}, \"repeats\": 2") == "invalid_argument");
  BOOST_TEST(refuse(400, ", \"sweep\": {\"repeats\": 20000}") == "invalid_argument");
  BOOST_TEST(listed("/v1/jobs", "jobs").empty());
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_taken_is_refused_by_a_code, V1Serving) {
  const auto refuse = [&](int status, const std::string& body) {
    return refused(status, "POST", "/v1/jobs", body);
  };
  for (const std::string& bad :
       {std::string("no json"), std::string("[]"), std::string("{}"), with_workflow("3"),
        with_workflow(showing(1), ", \"priorty\": 1"), with_workflow(showing(1), ", \"tag\": 1"),
        with_workflow(showing(1), ", \"repeats\": 0"), with_workflow(showing(1), ", \"front\": 1"),
        with_workflow(showing(1), ", \"repeats\": 2, \"id\": \"x\"")})
    BOOST_TEST(refuse(400, bad) == "invalid_argument", bad);
  const Json answer = expect(
      422, "POST", "/v1/jobs",
      with_workflow("{\"1\": {\"class_type\": \"t.Number\", \"inputs\": {\"value\": \"x\"}}, "
                    "\"2\": {\"class_type\": \"t.Show\", \"inputs\": {\"value\": [\"1\", 0]}}}"));
  const Json& error = answer.at("error");
  BOOST_TEST(error.at("code").as_string() == "invalid_workflow");
  BOOST_TEST(error.at("errors").size() == 1u);
  BOOST_TEST((error.at("node_errors").find("1") != nullptr));
  submit_v1(showing(1), ", \"id\": \"mine\"");
  BOOST_TEST(refuse(409, with_workflow(showing(1), ", \"id\": \"mine\"")) == "id_in_use");
  const Json misspelt = expect(400, "POST", "/v1/jobs", with_workflow("{}", ", \"priorty\": 1"));
  BOOST_TEST(misspelt.at("error").at("where").as_string() == "priorty");
}

BOOST_AUTO_TEST_CASE(a_full_queue_says_when_to_come_again) {
  V1Serving serving([](engine::ServiceOptions& options) { options.queue.capacity = 2; });
  serving.expect(200, "POST", "/v1/queue/pause");
  serving.submit_v1(showing(1));
  const Reply reply = serving.post("/v1/jobs", with_workflow(showing(1), ", \"repeats\": 2"));
  BOOST_TEST(reply.status == 503);
  BOOST_TEST(reply.header("retry-after") == "10");
  BOOST_TEST(reply.json().at("error").at("code").as_string() == "queue_full");
  BOOST_TEST(serving.listed("/v1/jobs", "jobs").size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_workflow_is_checked_without_being_run, V1Serving) {
  const Json good = expect(200, "POST", "/v1/validate", with_workflow(showing(1)));
  BOOST_TEST(good.at("valid").as_bool());
  BOOST_TEST(engine::write_json(good.at("outputs")) == "[\"2\"]");
  const Json saved = expect(200, "POST", "/v1/validate", with_workflow(kSaved));
  BOOST_TEST(saved.at("prompt").at("1").at("inputs").at("value").as_int64() == 4);
  const Json bad = expect(200, "POST", "/v1/validate",
                          with_workflow("{\"1\": {\"class_type\": \"none\", \"inputs\": {}}}"));
  BOOST_TEST(!bad.at("valid").as_bool());
  BOOST_TEST(bad.at("errors").size() > 0u);
  BOOST_TEST(listed("/v1/jobs", "jobs").empty());
  BOOST_TEST(refused(400, "POST", "/v1/validate", "{}") == "invalid_argument");
}

BOOST_FIXTURE_TEST_CASE(a_plan_is_told, V1Serving) {
  const Json plan = expect(200, "POST", "/v1/plan", with_workflow(showing(1)));
  BOOST_TEST(plan.is_object());
  BOOST_TEST(plan.size() > 0u);
  BOOST_TEST(refused(422, "POST", "/v1/plan",
                     with_workflow("{\"1\": {\"class_type\": \"none\", \"inputs\": {}}}")) ==
             "invalid_workflow");
}

BOOST_AUTO_TEST_SUITE_END()
