// What may come between two moments of a job: cancels, ends, other jobs of the same client.
#include "engine/serve/runner.h"

#include <atomic>
#include <map>
#include <set>

#include "tests/engine/serve/service_fixture.h"
#include "tests/support/comes_about.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

constexpr const char* kId = "00000000-0000-4000-8000-000000000001";

std::string interrupting(const std::string& id) { return cat("{\"prompt_id\": \"", id, "\"}"); }

// The runner asks for the time when it has claimed a job, before the engine is given it: there it
// can be held.
struct BetweenClaimAndStart : Serving {
  std::function<void()> at_first_claim;
  std::atomic<bool> is_armed{true};

  BetweenClaimAndStart()
      : Serving([this](engine::ServiceOptions& options) {
          options.runner.clock = [this] {
            if (is_armed.exchange(false) && at_first_claim) at_first_claim();
            return std::int64_t{1000};
          };
        }) {}
};

std::string status_of(const Json& entry) { return entry.at("status").at("status_str").as_string(); }

std::size_t count_of(const Json& entry, const std::string& type) {
  std::size_t count = 0;
  for (const Json& message : entry.at("status").at("messages").as_array())
    count += message.at(std::size_t{0}).as_string() == type;
  return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(runner)

BOOST_FIXTURE_TEST_CASE(a_cancel_between_claim_and_start_is_not_lost, BetweenClaimAndStart) {
  for (const bool is_by_id : {true, false}) BOOST_TEST_CONTEXT(is_by_id) {
      const std::string id = cat(std::string(kId).substr(0, 35), is_by_id ? "1" : "2");
      unsigned status = 0;
      at_first_claim = [&] {
        status = unsigned(post("/interrupt", is_by_id ? interrupting(id) : "").status);
      };
      is_armed = true;
      submit(meeting(1, 2), cat(", \"prompt_id\": \"", id, "\""));  // nobody else comes
      const Json entry = ended(id);
      BOOST_TEST(status == 200u);
      BOOST_TEST(count_of(entry, "execution_interrupted") == 1u);
    }
}

BOOST_FIXTURE_TEST_CASE(a_cancel_of_an_ended_job_does_not_reach_the_next_one, Serving) {
  const std::string a = submit(showing(1));
  ended(a);
  const std::string b = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  BOOST_TEST(post("/interrupt", interrupting(a)).status == 200);
  BOOST_TEST(post("/api/jobs/" + a + "/cancel", "").body == "{\"cancelled\":false}");
  BOOST_TEST(post("/queue", cat("{\"delete\": [\"", a, "\"]}")).status == 200);
  const std::string c = submit(meeting(2, 2));
  for (const std::string& id : {b, c}) BOOST_TEST(status_of(ended(id)) == "success");
  BOOST_TEST(status_of(ended(a)) == "success");
}

// An old claim of the same job: the one that runs now is not meant.
BOOST_FIXTURE_TEST_CASE(a_stale_stop_does_not_reach_a_later_claim, Serving) {
  const std::string id = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  service.reset();
  start();
  wait_until([&] { return running() == 1; });
  BOOST_TEST(service->queue().find(id)->generation == 2);
  BOOST_TEST(!service->queue().finish({id, 1}, {engine::JobState::cancelled, "", ""}));
  BOOST_TEST(running() == 1u);
  const std::string other = submit(meeting(2, 2));
  for (const std::string& one : {id, other}) BOOST_TEST(status_of(ended(one)) == "success");
}

BOOST_FIXTURE_TEST_CASE(a_cancel_of_all_stops_every_one, Serving) {
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(submit(meeting(i, 9)));
  wait_until([&] { return running() == 4; });
  service->queue().pause_all(true);
  const std::string waits = submit(showing(1));
  BOOST_TEST(post("/interrupt", "").status == 200);
  for (const std::string& id : ids) BOOST_TEST(count_of(ended(id), "execution_interrupted") == 1u);
  BOOST_TEST(running() == 0u);
  BOOST_TEST(pending() == 1u);
  service->queue().pause_all(false);
  BOOST_TEST(status_of(ended(waits)) == "success");
}

BOOST_FIXTURE_TEST_CASE(jobs_of_one_client_have_each_their_own_progress, Serving) {
  SocketClient client(port(), "/ws?clientId=tab");
  const std::string of_tab = ", \"client_id\": \"tab\"";
  const std::set<std::string> ids{submit(meeting(1, 2), of_tab), submit(meeting(2, 2), of_tab)};
  std::map<std::string, std::set<std::string>> finished;  // nodes, by job
  std::set<std::string> over;
  while (over.size() < 2) {
    const Json message = client.read_json();
    BOOST_TEST_REQUIRE(!message.is_null());
    const Json& data = message.at("data");
    if (message.at("type").as_string() == "executing" && data.at("node").is_null())
      over.insert(data.at("prompt_id").as_string());
    if (message.at("type").as_string() != "progress_state") continue;
    const std::string id = data.at("prompt_id").as_string();
    BOOST_TEST(ids.contains(id));
    BOOST_TEST(!over.contains(id), "progress behind the end");
    for (const Json::Member& node : data.at("nodes").members()) {
      BOOST_TEST(node.value.at("prompt_id").as_string() == id);
      if (node.value.at("state").as_string() == "finished") finished[id].insert(node.key);
    }
  }
  for (const std::string& id : ids) BOOST_TEST(finished[id].size() == 2u);
}

// A node that is null would say that the job is over.
BOOST_FIXTURE_TEST_CASE(who_comes_before_the_first_node_is_told_of_none, BetweenClaimAndStart) {
  std::unique_ptr<SocketClient> client;
  std::string first;  // Boost's checks are for one thread at a time
  at_first_claim = [&] {
    client = std::make_unique<SocketClient>(port(), "/ws?clientId=tab");
    first = client->read_json().at("type").as_string();
  };
  ended(submit(showing(1), ", \"client_id\": \"tab\""));
  BOOST_TEST(first == "status");
  std::string type = first;
  while (type == "status") type = client->read_json().at("type").as_string();
  BOOST_TEST(type == "execution_start");
}

// Wherever the end falls: between a submission and a claim, within a claim, or behind a run.
BOOST_AUTO_TEST_CASE(an_end_at_any_moment_loses_no_job_and_repeats_none) {
  Serving serving;
  std::vector<std::string> ids;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 3; ++i) ids.push_back(serving.submit(showing(10 * round + i)));
    if (round % 2 == 0) serving.ended(ids.back());
    serving.service.reset();
    serving.start();
  }
  for (const std::string& id : ids) {
    const Json entry = serving.ended(id);
    BOOST_TEST(status_of(entry) == "success");
    BOOST_TEST(count_of(entry, "execution_start") == 1u);
  }
  BOOST_TEST(serving.get("/history").json().size() == ids.size());
  BOOST_TEST(serving.running() + serving.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(an_end_between_claim_and_start_leaves_the_job_waiting,
                        BetweenClaimAndStart) {
  std::atomic<bool> is_claimed{false}, goes_on{false};
  at_first_claim = [&] {
    is_claimed = true;
    comes_about([&] { return goes_on.load(); });  // else it is not held any more, and runs
  };
  const std::string id = submit(meeting(1, 2));
  wait_until([&] { return is_claimed.load(); });
  std::jthread ending([&] { service.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  goes_on = true;
  ending.join();
  start();
  wait_until([&] { return running() == 1; });
  BOOST_TEST(service->queue().find(id)->generation == 2);
  const std::string other = submit(meeting(2, 2));
  for (const std::string& one : {id, other}) BOOST_TEST(status_of(ended(one)) == "success");
}

BOOST_AUTO_TEST_SUITE_END()
