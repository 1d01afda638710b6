// /v1/jobs, /v1/queue and /v1/cancel.
#include "tests/engine/serve/v1_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

const auto each = boost::test_tools::per_element();

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& text : list.as_array()) texts.push_back(text.as_string());
  return texts;
}

// Nothing is claimed.
struct Held : V1Serving {
  std::vector<std::string> ids;
  Held() {
    expect(200, "POST", "/v1/queue/pause");
    ids.push_back(submit_v1(showing(1), ", \"tag\": \"odd\", \"user\": \"adam\""));
    ids.push_back(submit_v1(showing(2), ", \"tag\": \"even\", \"batch\": \"b\""));
    ids.push_back(submit_v1(showing(3), ", \"tag\": \"odd\", \"paused\": true"));
  }
  std::vector<std::string> some(std::initializer_list<std::size_t> which) const {
    std::vector<std::string> found;
    for (const std::size_t i : which) found.push_back(ids[i]);
    return found;
  }
  std::vector<std::string> jobs(const std::string& query = "") const {
    return listed("/v1/jobs" + query, "jobs");
  }
  std::vector<std::string> waiting() const { return listed("/v1/queue", "waiting"); }
  std::string act(std::size_t job, const std::string& what, const std::string& body = "") const {
    return expect(200, "POST", cat("/v1/jobs/", ids[job], "/", what), body).at("state").as_string();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(v1_job_routes)

BOOST_FIXTURE_TEST_CASE(a_job_is_told_from_its_submission_to_its_end, V1Serving) {
  const Json made = expect(201, "POST", "/v1/jobs",
                           cat("{\"workflow\": ", showing(5),
                               ", \"id\": \"mine\", \"tag\": \"t\", \"user\": \"u\", "
                               "\"batch\": \"b\", \"client\": \"c\", \"priority\": 3}"));
  BOOST_TEST(made.at("batch").as_string() == "b");
  const Json& taken = made.at("jobs").at(std::size_t{0});
  BOOST_TEST(taken.at("id").as_string() == "mine");
  wait_for("mine", "done");
  const Json done = job("mine");
  for (const auto& [key, value] :
       {std::pair("tag", "t"), {"user", "u"}, {"batch", "b"}, {"client", "c"}})
    BOOST_TEST(done.at(key).as_string() == value, key);
  BOOST_TEST(done.at("priority").as_int64() == 3);
  BOOST_TEST(done.at("attempts").as_int64() == 1);
  BOOST_TEST(done.at("created_ms").as_int64() <= done.at("started_ms").as_int64());
  BOOST_TEST(done.at("started_ms").as_int64() <= done.at("ended_ms").as_int64());
  BOOST_TEST(engine::write_json(done.at("outputs")) ==
             "[{\"node\":\"2\",\"kind\":\"text\",\"value\":5}]");
  for (const char* none : {"error", "waiting", "progress", "position", "retry_of"})
    BOOST_TEST(done.at(none).is_null(), none);
  BOOST_TEST((done.at("workflow").at("prompt") == engine::parse_json(showing(5), "prompt")));
  BOOST_TEST(refused(404, "GET", "/v1/jobs/none") == "not_found");
}

BOOST_FIXTURE_TEST_CASE(a_failure_has_a_code_a_node_and_a_trail, V1Serving) {
  const std::string id = submit_v1(failing("broken"));
  wait_for(id, "failed");
  const Json failed = job(id);
  const Json& error = failed.at("error");
  BOOST_TEST(error.at("node").as_string() == "1");
  BOOST_TEST(error.at("class_type").as_string() == "t.Meet");
  BOOST_TEST(error.at("message").as_string().find("broken") != std::string::npos);
  BOOST_TEST(!error.at("code").as_string().empty());
  BOOST_TEST(error.at("trail").size() > 0u);
}

BOOST_FIXTURE_TEST_CASE(jobs_are_listed_by_state_tag_batch_and_user_in_pages, Held) {
  BOOST_TEST(jobs() == some({2, 1, 0}), each);
  BOOST_TEST(jobs("?state=pending") == some({1, 0}), each);
  BOOST_TEST(jobs("?state=paused,done") == some({2}), each);
  BOOST_TEST(jobs("?tag=odd") == some({2, 0}), each);
  BOOST_TEST(jobs("?batch=b") == some({1}), each);
  BOOST_TEST(jobs("?user=adam&tag=odd") == some({0}), each);
  const Json page = expect(200, "GET", "/v1/jobs?limit=2");
  BOOST_TEST(page.at("total").as_int64() == 3);
  const Json rest = expect(200, "GET", cat("/v1/jobs?limit=2&before=", page.at("next").as_int64()));
  BOOST_TEST_REQUIRE(rest.at("jobs").size() == 1u);
  BOOST_TEST(rest.at("jobs").at(std::size_t{0}).at("id").as_string() == ids[0]);
  BOOST_TEST((rest.at("jobs").at(std::size_t{0}).find("workflow") == nullptr));
  BOOST_TEST(rest.at("next").is_null());
  for (const char* bad : {"state=none", "limit=0", "limit=x", "limit=1001", "before=0"})
    BOOST_TEST(refused(400, "GET", cat("/v1/jobs?", bad)) == "invalid_argument");
}

BOOST_FIXTURE_TEST_CASE(it_is_told_why_a_job_waits, Held) {
  const auto reason = [&](std::size_t i) {
    return job(ids[i]).at("waiting").at("reason").as_string();
  };
  BOOST_TEST(reason(0) == "queue_paused");
  BOOST_TEST(reason(2) == "paused");
  const Json queue = expect(200, "GET", "/v1/queue");
  BOOST_TEST(queue.at("is_paused").as_bool());
  BOOST_TEST(queue.at("counts").at("pending").as_int64() == 2);
  BOOST_TEST(queue.at("counts").at("paused").as_int64() == 1);
  const Json& waiting = queue.at("waiting");
  BOOST_TEST(waiting.at(std::size_t{1}).at("position").as_int64() == 1);
  BOOST_TEST(waiting.at(std::size_t{2}).at("position").is_null());
  BOOST_TEST(expect(200, "GET", "/v1/queue?limit=1").at("waiting").size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_job_behind_others_says_so) {
  V1Serving serving([](engine::ServiceOptions& options) { options.runner.jobs = 1; });
  const std::string runs = serving.submit_v1(meeting(1, 2));
  serving.wait_for(runs, "running");
  const std::string next = serving.submit_v1(showing(1)), last = serving.submit_v1(showing(2));
  BOOST_TEST(serving.job(next).at("waiting").at("reason").as_string() == "workers");
  const Json waits = serving.job(last);
  BOOST_TEST(waits.at("waiting").at("reason").as_string() == "behind_others");
  BOOST_TEST(waits.at("position").as_int64() == 1);
  serving.wait_until([&] { return serving.job(runs).at("progress").at("nodes").size() == 1u; });
  const Json running = serving.job(runs);
  BOOST_TEST(running.at("progress").at("state").as_string() == "running");
  const Json& node = running.at("progress").at("nodes").at(std::size_t{0});
  BOOST_TEST(node.at("id").as_string() == "1");
  BOOST_TEST(node.at("class_type").as_string() == "t.Meet");
  BOOST_TEST(running.at("progress").at("preview").is_null());
  BOOST_TEST(serving.refused(404, "GET", cat("/v1/jobs/", runs, "/preview")) == "not_found");
  const Json cancelled = serving.expect(202, "POST", cat("/v1/jobs/", runs, "/cancel"));
  BOOST_TEST(cancelled.at("id").as_string() == runs);
  serving.wait_for(last, "done");
  BOOST_TEST(serving.state(runs) == "cancelled");
}

BOOST_FIXTURE_TEST_CASE(jobs_are_moved, Held) {
  BOOST_TEST(waiting() == some({0, 1, 2}), each);
  act(2, "move", "{\"to\": \"front\"}");
  BOOST_TEST(waiting() == some({2, 0, 1}), each);
  act(2, "move", "{\"to\": \"back\"}");
  BOOST_TEST(waiting() == some({0, 1, 2}), each);
  act(1, "move", cat("{\"before\": \"", ids[0], "\"}"));
  BOOST_TEST(waiting() == some({1, 0, 2}), each);
  act(2, "move", "{\"priority\": 7}");
  BOOST_TEST(waiting() == some({2, 1, 0}), each);
  const auto move = [&](int status, const std::string& id, const std::string& body) {
    return refused(status, "POST", cat("/v1/jobs/", id, "/move"), body);
  };
  for (const char* bad : {"{}", "{\"to\": \"up\"}", "{\"to\": \"front\", \"priority\": 1}",
                          "{\"priority\": \"high\"}", "{\"where\": 1}", "no json"})
    BOOST_TEST(move(400, ids[0], bad) == "invalid_argument", bad);
  BOOST_TEST(move(404, "none", "{\"to\": \"front\"}") == "not_found");
  BOOST_TEST(move(404, ids[0], "{\"before\": \"none\"}") == "not_found");
  expect(200, "POST", cat("/v1/jobs/", ids[1], "/cancel"));
  BOOST_TEST(move(409, ids[1], "{\"to\": \"front\"}") == "wrong_state");
  BOOST_TEST(move(409, ids[0], cat("{\"before\": \"", ids[1], "\"}")) == "wrong_state");
}

BOOST_FIXTURE_TEST_CASE(jobs_are_paused_and_go_on, Held) {
  BOOST_TEST(act(0, "pause") == "paused");
  BOOST_TEST(refused(409, "POST", cat("/v1/jobs/", ids[0], "/pause")) == "wrong_state");
  BOOST_TEST(act(0, "resume") == "pending");
  BOOST_TEST(refused(409, "POST", cat("/v1/jobs/", ids[0], "/resume")) == "wrong_state");
  BOOST_TEST(refused(404, "POST", "/v1/jobs/none/pause") == "not_found");
  BOOST_TEST(!expect(200, "POST", "/v1/queue/resume").at("is_paused").as_bool());
  wait_for(ids[0], "done");
  wait_for(ids[1], "done");
  BOOST_TEST(state(ids[2]) == "paused");
  BOOST_TEST(refused(409, "POST", cat("/v1/jobs/", ids[0], "/pause")) == "wrong_state");
}

namespace {

// A job that is paused between its two nodes.
struct PausedRun : V1Serving {
  std::string paused;
  PausedRun() {
    paused = submit_v1(meeting(1, 2));
    wait_until([&] {
      const Json now = job(paused);
      return !now.at("progress").is_null() && now.at("progress").at("nodes").size() == 1u;
    });
    const Json answer = expect(200, "POST", cat("/v1/jobs/", paused, "/pause"));
    BOOST_TEST(answer.at("progress").at("state").as_string() == "paused");
    const std::string other = submit_v1(meeting(2, 2));
    wait_for(other, "done");
    wait_until([&] { return job(paused).at("progress").at("nodes_done").as_int64() == 1; });
  }
};

}  // namespace

// The node that is under way ends; the next one does not begin before the job goes on.
BOOST_FIXTURE_TEST_CASE(a_job_that_runs_is_paused_where_it_is, PausedRun) {
  const Json held = job(paused);
  BOOST_TEST(held.at("state").as_string() == "running");
  BOOST_TEST(held.at("progress").at("state").as_string() == "paused");
  BOOST_TEST(held.at("progress").at("nodes").size() == 0u);
  expect(200, "POST", cat("/v1/jobs/", paused, "/resume"));
  wait_for(paused, "done");
  BOOST_TEST(refused(409, "POST", cat("/v1/jobs/", paused, "/resume")) == "wrong_state");
}

BOOST_FIXTURE_TEST_CASE(a_run_that_is_paused_is_cancelled, PausedRun) {
  expect(202, "POST", cat("/v1/jobs/", paused, "/cancel"));
  wait_for(paused, "cancelled");
}

BOOST_FIXTURE_TEST_CASE(a_service_ends_while_a_run_is_paused_and_runs_it_again, PausedRun) {
  service.reset();
  start();
  wait_for(paused, "done");
  BOOST_TEST(job(paused).at("attempts").as_int64() == 2);
}

BOOST_FIXTURE_TEST_CASE(ended_jobs_are_tried_again_and_deleted, Held) {
  BOOST_TEST(refused(409, "POST", cat("/v1/jobs/", ids[0], "/retry")) == "wrong_state");
  BOOST_TEST(refused(409, "DELETE", "/v1/jobs/" + ids[0]) == "wrong_state");
  BOOST_TEST(expect(200, "POST", cat("/v1/jobs/", ids[0], "/cancel")).at("state").as_string() ==
             "cancelled");
  BOOST_TEST(refused(409, "POST", cat("/v1/jobs/", ids[0], "/cancel")) == "wrong_state");
  const Json again = expect(201, "POST", cat("/v1/jobs/", ids[0], "/retry"));
  BOOST_TEST(again.at("retry_of").as_string() == ids[0]);
  BOOST_TEST(again.at("tag").as_string() == "odd");
  BOOST_TEST(again.at("id").as_string() != ids[0]);
  BOOST_TEST(expect(204, "DELETE", "/v1/jobs/" + ids[0]).is_null());
  BOOST_TEST(refused(404, "DELETE", "/v1/jobs/" + ids[0]) == "not_found");
  BOOST_TEST(refused(404, "GET", "/v1/jobs/" + ids[0]) == "not_found");
  BOOST_TEST(refused(404, "POST", "/v1/jobs/none/retry") == "not_found");
}

BOOST_FIXTURE_TEST_CASE(a_retry_uses_what_is_kept_or_begins_at_the_start, V1Serving) {
  const std::string first = submit_v1(showing(6));
  wait_for(first, "done");
  const auto cached = [&](const std::string& id) {  // nodes that had not to run
    wait_for(id, "done");
    const Json messages = ended(id).at("status").at("messages");
    return messages.at(1).at(1).at("nodes").size();
  };
  const auto again = [&](const char* body) {
    const Json made = expect(201, "POST", cat("/v1/jobs/", first, "/retry"), body);
    const std::string id = made.at("id").as_string();
    BOOST_TEST(job(id).at("from_start").as_bool() == made.at("from_start").as_bool());
    return id;
  };
  BOOST_TEST(cached(again("")) > 0u);
  const std::string anew = again("{\"from_start\": true}");
  BOOST_TEST(cached(anew) == 0u);
  BOOST_TEST(job(anew).at("from_start").as_bool());
  BOOST_TEST(engine::write_json(ended(anew).at("outputs")) == "{\"2\":{\"text\":[6]}}");
  BOOST_TEST(cached(again("{\"from_start\": false}")) > 0u);  // what it has made is kept
  BOOST_TEST(refused(400, "POST", cat("/v1/jobs/", first, "/retry"), "{\"from_start\": 1}") ==
             "invalid_argument");
}

BOOST_FIXTURE_TEST_CASE(jobs_are_cancelled_together, Held) {
  const auto cancel = [&](const std::string& body) {
    return strings(expect(200, "POST", "/v1/cancel", body).at("cancelled"));
  };
  for (const char* bad :
       {"", "{}", "{\"but_running\": true}", "{\"ids\": \"x\"}", "{\"al\": true}"})
    BOOST_TEST(refused(400, "POST", "/v1/cancel", bad) == "invalid_argument", bad);
  BOOST_TEST(cancel("{\"ids\": []}").empty());
  BOOST_TEST(cancel("{\"tag\": \"odd\", \"user\": \"adam\"}") == some({0}), each);
  BOOST_TEST(cancel("{\"batch\": \"b\"}") == some({1}), each);
  BOOST_TEST(cancel("{\"all\": true}") == some({2}), each);
  expect(200, "POST", "/v1/queue/resume");
  const std::string runs = submit_v1(meeting(1, 2));
  wait_for(runs, "running");
  BOOST_TEST(cancel("{\"all\": true, \"but_running\": true}").empty());
  BOOST_TEST(state(runs) == "running");
  const Json all = expect(200, "POST", "/v1/cancel", "{\"all\": true}");
  BOOST_TEST(strings(all.at("cancelling")) == std::vector{runs}, each);
  wait_for(runs, "cancelled");
}

// Four nodes that wait for each other, and two seats.
BOOST_AUTO_TEST_CASE(background_jobs_give_way_and_go_on) {
  V1Serving serving([](engine::ServiceOptions& options) { options.runner.jobs = 2; });
  std::vector<std::string> ids;
  for (int i = 1; i <= 2; ++i) {
    ids.push_back(serving.submit_v1(meeting(i, 4), ", \"background\": true"));
    // A job that has not begun its node gives way before, and does not come to the meeting.
    serving.wait_until([&] {
      const Json progress = serving.job(ids.back()).at("progress");
      return progress.is_object() && progress.at("nodes").size() > 0;
    });
  }
  const std::string later = serving.submit_v1(showing(9), ", \"background\": true");
  ids.push_back(serving.submit_v1(meeting(3, 4)));
  serving.wait_for(ids.back(), "running");
  serving.wait_until([&] { return !serving.job(ids[0]).at("waiting").is_null(); });
  const Json told = serving.job(ids[0]);
  BOOST_TEST(told.at("background").as_bool());
  BOOST_TEST(told.at("waiting").at("reason").as_string() == "background");
  BOOST_TEST(told.at("progress").at("state").as_string() == "waiting");
  BOOST_TEST(serving.state(later) == "pending");
  ids.push_back(serving.submit_v1(meeting(4, 4)));
  ids.push_back(later);
  for (const std::string& id : ids) serving.wait_for(id, "done");
}

BOOST_AUTO_TEST_CASE(it_is_told_how_long_a_job_will_wait) {
  V1Serving serving([](engine::ServiceOptions& options) { options.runner.jobs = 2; });
  const auto expected = [&](const std::string& id) {
    return serving.job(id).at("waiting").at("expected_seconds");
  };
  std::vector<std::string> ids{serving.submit_v1(meeting(1, 3)), serving.submit_v1(meeting(2, 3))};
  for (const std::string& id : ids) serving.wait_for(id, "running");
  std::string waits = serving.submit_v1(showing(1));
  BOOST_TEST(expected(waits).is_null());  // no job has ended yet
  serving.expect(200, "POST", "/v1/cancel", "{\"all\": true}");
  for (const std::string& id : ids) serving.wait_for(id, "cancelled");
  ids = {serving.submit_v1(meeting(1, 2)), serving.submit_v1(meeting(2, 2))};
  for (const std::string& id : ids) serving.wait_for(id, "done");
  ids = {serving.submit_v1(meeting(1, 3)), serving.submit_v1(meeting(2, 3))};
  for (const std::string& id : ids) serving.wait_for(id, "running");
  waits = serving.submit_v1(showing(1));
  BOOST_TEST(expected(waits).as_double() >= 0);
  const std::string message = serving.job(waits).at("waiting").at("message").as_string();
  BOOST_TEST(message.find("; begins in about ") != std::string::npos, message);
  const Json queue = serving.expect(200, "GET", "/v1/queue");
  const Json& first = queue.at("waiting").at(std::size_t{0});
  BOOST_TEST(first.at("waiting").at("expected_seconds").is_number());
  serving.expect(200, "POST", "/v1/queue/pause");
  BOOST_TEST(expected(waits).is_null());
  serving.expect(200, "POST", "/v1/cancel", "{\"all\": true}");
}

BOOST_AUTO_TEST_CASE(a_job_that_has_run_has_a_timeline) {
  const TemporaryFolder traces;
  const V1Serving serving(
      [&](engine::ServiceOptions& options) { options.runner.traces = traces.path(); });
  const std::string id = serving.submit_v1(showing(1));
  serving.wait_for(id, "done");
  const Json trace = serving.expect(200, "GET", "/v1/jobs/" + id + "/trace");
  BOOST_TEST(trace.at("traceEvents").size() > 0u);
  serving.expect(200, "POST", "/v1/queue/pause");
  const std::string waits = serving.submit_v1(showing(2));
  BOOST_TEST(serving.refused(404, "GET", "/v1/jobs/" + waits + "/trace") == "not_found");
  // Another job may have had its id.
  traces.write(waits + ".json", "{}");
  serving.expect(200, "POST", "/v1/jobs/" + waits + "/cancel");
  BOOST_TEST(serving.refused(404, "GET", "/v1/jobs/" + waits + "/trace") == "not_found");
  for (const char* other : {"none", "..%2Fqueue",
                            "%2e%2e%2f"
                            "x"})
    BOOST_TEST(ask(serving.port(), "GET", std::string("/v1/jobs/") + other + "/trace").status ==
               404);
  const V1Serving without;
  const std::string plain = without.submit_v1(showing(1));
  BOOST_TEST(without.refused(404, "GET", "/v1/jobs/" + plain + "/trace") == "not_found");
}

BOOST_AUTO_TEST_SUITE_END()
