// /api/jobs, and the log.
#include <memory>

#include "engine/serve/log_lines.h"
#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

std::string of_workflow(const std::string& id) {
  return cat(", \"extra_data\": {\"extra_pnginfo\": {\"workflow\": {\"id\": \"", id, "\"}}}");
}

std::vector<std::string> ids_in(const Json& answer) {
  std::vector<std::string> ids;
  for (const Json& job : answer.at("jobs").as_array()) ids.push_back(job.at("id").as_string());
  return ids;
}

// As a node that saves pictures tells them.
struct Ended : Serving {
  std::vector<std::string> ids;
  Ended() {
    ids.push_back(submit(showing(1), of_workflow("first")));
    ended(ids.back());
    ids.push_back(submit(failing("broken"), of_workflow("second")));
    ended(ids.back());
    service->queue().pause_all(true);
    ids.push_back(submit(showing(3), of_workflow("first")));
  }
  std::vector<std::string> listed(const std::string& query) const {
    return ids_in(get("/api/jobs" + query).json());
  }
  std::vector<std::string> some(std::initializer_list<std::size_t> which) const {
    std::vector<std::string> found;
    for (const std::size_t i : which) found.push_back(ids[i]);
    return found;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(job_routes)

BOOST_FIXTURE_TEST_CASE(jobs_are_listed_chosen_and_sorted, Ended) {
  const auto each = boost::test_tools::per_element();
  BOOST_TEST(listed("") == some({2, 1, 0}), each);
  BOOST_TEST(listed("?sort_order=asc") == some({0, 1, 2}), each);
  BOOST_TEST(listed("?status=pending") == some({2}), each);
  BOOST_TEST(listed("?status=completed,failed&sort_by=created_at&sort_order=asc") == some({0, 1}),
             each);
  BOOST_TEST(listed("?status=in_progress").empty());
  BOOST_TEST(listed("?workflow_id=first&sort_order=asc") == some({0, 2}), each);
  BOOST_TEST(listed("?limit=1&offset=1") == some({1}), each);
  BOOST_TEST(listed("?offset=-5&limit=1") == some({2}), each);
  BOOST_TEST(listed("?offset=9").empty());
  BOOST_TEST(ids_in(get("/api/api/jobs").json()) == some({2, 1, 0}), each);
  BOOST_TEST(engine::write_json(get("/api/jobs?limit=2").json().at("pagination")) ==
             "{\"offset\":0,\"limit\":2,\"total\":3,\"has_more\":true}");
  BOOST_TEST(engine::write_json(get("/api/jobs?offset=2").json().at("pagination")) ==
             "{\"offset\":2,\"limit\":null,\"total\":3,\"has_more\":false}");
  BOOST_TEST(listed("?sort_by=execution_duration").size() == 3u);
  for (const char* bad :
       {"status=none", "sort_by=name", "sort_order=up", "limit=x", "limit=0", "offset=x"}) {
    const Reply reply = get(cat("/api/jobs?", bad));
    BOOST_TEST(reply.status == 400, bad);
    BOOST_TEST(!reply.json().at("error").as_string().empty());
  }
}

BOOST_FIXTURE_TEST_CASE(a_job_is_described, Ended) {
  const Json done = get("/api/jobs/" + ids[0]).json();
  BOOST_TEST(done.at("status").as_string() == "completed");
  BOOST_TEST(done.at("priority").as_double() == 0);
  BOOST_TEST(done.at("workflow_id").as_string() == "first");
  BOOST_TEST(done.at("create_time").as_int64() <= done.at("execution_start_time").as_int64());
  BOOST_TEST(done.at("execution_start_time").as_int64() <=
             done.at("execution_end_time").as_int64());
  BOOST_TEST(engine::write_json(done.at("outputs")) == "{\"2\":{\"text\":[1]}}");
  BOOST_TEST(done.at("execution_status").at("status_str").as_string() == "success");
  BOOST_TEST((done.at("workflow").at("prompt") == engine::parse_json(showing(1), "prompt")));
  BOOST_TEST((done.at("workflow").at("extra_data").find("extra_pnginfo") != nullptr));
  BOOST_TEST(done.at("outputs_count").as_int64() == 0);
  const Json failed = get("/api/jobs/" + ids[1]).json();
  BOOST_TEST(failed.at("status").as_string() == "failed");
  BOOST_TEST(failed.at("execution_error").at("node_id").as_string() == "1");
  const Json waits = get("/api/jobs/" + ids[2]).json();
  BOOST_TEST(waits.at("status").as_string() == "pending");
  for (const char* absent : {"execution_start_time", "execution_end_time", "outputs",
                             "execution_error", "preview_output"})
    BOOST_TEST((waits.find(absent) == nullptr), absent);
  const Reply none = get("/api/jobs/none");
  BOOST_TEST(none.status == 404);
  BOOST_TEST(none.body == "{\"error\":\"Job not found\"}");
}

BOOST_FIXTURE_TEST_CASE(the_picture_to_show_is_one_of_the_output_folder, Serving) {
  engine::JobQueue& queue = service->queue();
  queue.pause_all(true);
  engine::NewJob job;
  job.prompt = "{}";
  job.id = "pictures";
  queue.submit({job});
  queue.pause_all(false);
  // The runner takes it and fails, which is as good: the next one is written by hand.
  ended("pictures");
  service.reset();
  {
    engine::JobQueue by_hand(options.queue_file);
    job.id = "by-hand";
    by_hand.submit({job});
    const engine::Job claimed = by_hand.claim().value();
    by_hand.finish({claimed.id, claimed.generation},
                   {engine::JobState::done,
                    "{\"3\": {\"text\": [\"x\"], \"animated\": [{}], \"images\": [{\"filename\": "
                    "\"t.png\", \"type\": \"temp\"}]}, \"4\": {\"images\": [{\"filename\": "
                    "\"o.png\", \"type\": \"output\"}, {\"filename\": \"p.png\", \"type\": "
                    "\"output\"}]}}",
                    ""});
  }
  start();
  const Json one = get("/api/jobs/by-hand").json();
  BOOST_TEST(one.at("outputs_count").as_int64() == 3);
  BOOST_TEST(
      engine::write_json(one.at("preview_output")) ==
      "{\"filename\":\"o.png\",\"type\":\"output\",\"nodeId\":\"4\",\"mediaType\":\"images\"}");
}

BOOST_FIXTURE_TEST_CASE(what_can_be_shown_is_told_by_key_format_and_name, Serving) {
  service.reset();
  const std::pair<const char*, const char*> kShown[] = {
      {R"({"video": [{"filename": "a.mp4", "type": "output"}]})", "video"},
      {R"({"audio": [{"filename": "a.flac", "type": "output"}]})", "audio"},
      {R"({"gifs": [{"filename": "a", "format": "video/h264", "type": "output"}]})", "gifs"},
      {R"({"3d": [{"filename": "a.glb", "type": "output"}]})", "3d"},
      {R"({"files": [{"filename": "a.txt", "type": "output"}]})", nullptr},
      {R"({"text": ["a.png"]})", nullptr}};
  {
    engine::JobQueue by_hand(options.queue_file);
    for (std::size_t i = 0; i < std::size(kShown); ++i) {
      engine::NewJob job;
      job.prompt = "{}";
      job.id = cat("job-", i);
      by_hand.submit({job});
      const engine::Job claimed = by_hand.claim().value();
      by_hand.finish({claimed.id, claimed.generation},
                     {engine::JobState::done, cat("{\"4\": ", kShown[i].first, "}"), ""});
    }
  }
  start();
  for (std::size_t i = 0; i < std::size(kShown); ++i) {
    const Json job = get(cat("/api/jobs/job-", i)).json();
    const Json* const shown = job.find("preview_output");
    BOOST_TEST((shown != nullptr) == (kShown[i].second != nullptr), kShown[i].first);
    if (shown != nullptr && kShown[i].second != nullptr)
      BOOST_TEST(shown->at("mediaType").as_string() == kShown[i].second);
  }
}

BOOST_FIXTURE_TEST_CASE(jobs_are_cancelled_by_id, Serving) {
  const std::string runs = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  service->queue().pause_all(true);
  const std::string a = submit(showing(1)), b = submit(showing(2)), c = submit(showing(3));
  const auto cancelled = [&](const std::string& target, const std::string& body) {
    return post(target, body).body;
  };
  BOOST_TEST(cancelled(cat("/api/jobs/", a, "/cancel"), "") == "{\"cancelled\":true}");
  BOOST_TEST(cancelled(cat("/api/jobs/", a, "/cancel"), "") == "{\"cancelled\":false}");
  BOOST_TEST(cancelled("/api/jobs/none/cancel", "") == "{\"cancelled\":false}");
  BOOST_TEST(cancelled("/api/jobs/cancel", cat("{\"job_ids\": [\"", runs, "\", \"", b, "\"]}")) ==
             "{\"cancelled\":true}");
  ended(runs);
  BOOST_TEST(pending() == 1u);
  BOOST_TEST(running() == 0u);
  BOOST_TEST(get("/api/jobs/" + a).status == 404);  // has never run
  const Json stopped = get("/api/jobs?status=cancelled").json().at("jobs");
  BOOST_TEST_REQUIRE(stopped.size() == 1u);
  BOOST_TEST(stopped.at(std::size_t{0}).at("id").as_string() == runs);
  BOOST_TEST(stopped.at(std::size_t{0}).at("status").as_string() == "cancelled");
  for (const char* bad : {"{}", "no json", "{\"job_ids\": [1]}", "{\"job_ids\": \"x\"}"})
    BOOST_TEST(post("/api/jobs/cancel", bad).status == 400, bad);
  BOOST_TEST(cancelled("/api/jobs/cancel", "{\"job_ids\": []}") == "{\"cancelled\":false}");
  BOOST_TEST(pending() == 1u);
}

BOOST_AUTO_TEST_CASE(the_log_is_shown_and_told) {
  const auto log = std::make_shared<engine::LogLines>();
  log->add("before");
  Serving serving([&](engine::ServiceOptions& options) { options.log = log; });
  const std::string text = serving.get("/internal/logs").json().as_string();
  BOOST_TEST(text.ends_with(" - before\n"), text);
  const Json raw = serving.get("/internal/logs/raw").json();
  BOOST_TEST(raw.at("entries").at(std::size_t{0}).at("m").as_string() == "before\n");
  BOOST_TEST(raw.at("entries").at(std::size_t{0}).at("t").as_string().size() == 26u);
  BOOST_TEST(raw.at("size").at("cols").as_int64() > 0);
  BOOST_TEST(serving.get("/api/internal/logs").status == 404);
  SocketClient listens(serving.port(), "/ws?clientId=tab"), other(serving.port(), "/ws?clientId=b");
  listens.read_json();
  other.read_json();
  const auto subscribe = [&](const char* enabled) {
    return ask(serving.port(), "PATCH", "/internal/logs/subscribe",
               cat("{\"clientId\": \"tab\", \"enabled\": ", enabled, "}"))
        .status;
  };
  BOOST_TEST(subscribe("true") == 200);
  log->add("told");
  const Json message = listens.read_json();
  BOOST_TEST(message.at("type").as_string() == "logs");
  BOOST_TEST(message.at("data").at("entries").at(std::size_t{0}).at("m").as_string() == "told\n");
  BOOST_TEST(message.at("data").at("size").is_null());
  BOOST_TEST(subscribe("false") == 200);
  BOOST_TEST(subscribe("1") == 400);
  log->add("not told");
  // The next that both hear is of the queue.
  serving.service->queue().pause_all(true);
  BOOST_TEST(listens.read_json().at("type").as_string() == "status");
  BOOST_TEST(other.read_json().at("type").as_string() == "status");
  serving.service.reset();
  log->add("nobody is there");
}

BOOST_AUTO_TEST_SUITE_END()
