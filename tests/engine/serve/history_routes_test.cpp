// /history, and what outlives the service.
#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::Json;

namespace {

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> all;
  for (const Json::Member& member : object.members()) all.push_back(member.key);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(history_routes)

BOOST_FIXTURE_TEST_CASE(an_entry_has_all_of_a_run, Serving) {
  const std::string id = submit(showing(5), ", \"client_id\": \"tab\"");
  const Json entry = ended(id);
  const Json& prompt = entry.at("prompt");
  BOOST_TEST(prompt.size() == 5u);
  BOOST_TEST(prompt.at(std::size_t{0}).as_double() == 0);
  BOOST_TEST(prompt.at(1).as_string() == id);
  BOOST_TEST((prompt.at(2) == engine::parse_json(showing(5), "prompt")));
  BOOST_TEST(prompt.at(3).at("client_id").as_string() == "tab");
  BOOST_TEST(engine::write_json(prompt.at(4)) == "[\"2\"]");
  BOOST_TEST(engine::write_json(entry.at("outputs")) == "{\"2\":{\"text\":[5]}}");
  BOOST_TEST(
      engine::write_json(entry.at("meta")) ==
      "{\"2\":{\"node_id\":\"2\",\"display_node\":\"2\",\"parent_node\":null,\"real_node_id\":"
      "\"2\"}}");
  const Json& status = entry.at("status");
  BOOST_TEST(status.at("status_str").as_string() == "success");
  BOOST_TEST(status.at("completed").as_bool());
  std::string events;
  for (const Json& message : status.at("messages").as_array()) {
    events += message.at(std::size_t{0}).as_string() + " ";
    BOOST_TEST(message.at(1).at("prompt_id").as_string() == id);
    BOOST_TEST(message.at(1).at("timestamp").as_int64() > 0);
  }
  BOOST_TEST(events == "execution_start execution_cached execution_success ");
}

BOOST_FIXTURE_TEST_CASE(pages_of_it_are_counted_from_the_oldest, Serving) {
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(submit(showing(i)));
    ended(ids.back());
  }
  const auto page = [&](const std::string& query) { return keys(get("/history" + query).json()); };
  const auto some = [&](std::size_t from, std::size_t to) {
    return std::vector<std::string>(ids.begin() + long(from), ids.begin() + long(to));
  };
  BOOST_TEST(page("") == ids, boost::test_tools::per_element());
  BOOST_TEST(page("?max_items=2") == some(2, 4), boost::test_tools::per_element());
  BOOST_TEST(page("?max_items=2&offset=1") == some(1, 3), boost::test_tools::per_element());
  BOOST_TEST(page("?offset=3") == some(3, 4), boost::test_tools::per_element());
  BOOST_TEST(page("?max_items=2&offset=9").empty());
  BOOST_TEST(get("/history?max_items=x").status == 400);
  BOOST_TEST(keys(get("/api/history").json()) == ids, boost::test_tools::per_element());

  BOOST_TEST(post("/history", engine::cat("{\"delete\": [\"", ids[1], "\"]}")).status == 200);
  BOOST_TEST(page("").size() == 3u);
  BOOST_TEST(get("/history/" + ids[1]).body == "{}");
  BOOST_TEST(post("/api/history", "{\"clear\": true}").status == 200);
  BOOST_TEST(page("").empty());
  BOOST_TEST(post("/history", "no json").status == 400);
}

BOOST_FIXTURE_TEST_CASE(there_is_none_of_what_has_not_ended, Serving) {
  const std::string runs = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  service->queue().pause_all(true);
  const std::string waits = submit(showing(1));
  for (const std::string& id : {runs, waits, std::string("none")}) {
    const Reply reply = get("/history/" + id);
    BOOST_TEST(reply.status == 200);
    BOOST_TEST(reply.body == "{}");
  }
  // Nor can it be taken out of the history.
  post("/history", engine::cat("{\"clear\": true, \"delete\": [\"", runs, "\", \"", waits, "\"]}"));
  BOOST_TEST(running() == 1u);
  BOOST_TEST(pending() == 1u);
  post("/interrupt", "");
}

// The one that ran when the service ended runs again, the others as they would have.
BOOST_FIXTURE_TEST_CASE(queue_and_history_outlive_the_service, Serving) {
  const std::string done = submit(showing(1));
  const std::string before = engine::write_json(ended(done));
  const std::string ran = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  service.reset();
  {
    const engine::JobQueue queue(options.queue_file);
    BOOST_TEST((queue.find(ran)->state == engine::JobState::pending));
  }
  start();
  BOOST_TEST(engine::write_json(ended(done)) == before);
  const std::string other = submit(meeting(2, 2));
  for (const std::string& id : {ran, other})
    BOOST_TEST(ended(id).at("status").at("status_str").as_string() == "success");
  BOOST_TEST(get("/history").json().size() == 3u);
}

BOOST_AUTO_TEST_SUITE_END()
