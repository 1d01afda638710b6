// Keys of users and of administrators: what each role may ask for, and what it is shown.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <regex>

#include "engine/serve/authorization.h"
#include "engine/serve/log_lines.h"
#include "tests/engine/serve/roles_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::Json;

namespace {

// "GET /v1/jobs/{id}" -> "/v1/jobs/none".
std::string path_in(const std::string& pattern) {
  const std::string path = pattern.substr(pattern.find(' ') + 1);
  return std::regex_replace(path, std::regex(R"(\{[^}]*\})"), "none");
}

bool is_open(const std::string& pattern) {
  const std::string path = pattern.substr(pattern.find(' ') + 1);
  return path == "/" || path == "/v1/session" || path.starts_with("/heddle");
}

std::vector<std::string> ids_in(const Json& list, std::string_view member) {
  std::vector<std::string> ids;
  for (const Json& one : list.as_array()) ids.push_back(one.at(member).as_string());
  return ids;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const Json::Member& member : object.members()) keys.push_back(member.key);
  return keys;
}

using Ids = std::vector<std::string>;

// One job of each, which has ended.
struct WithTwoJobs : WithRoles {
  const std::string of_ann = submit_as(ann, showing(1)), of_bob = submit_as(bob, showing(2));
  WithTwoJobs() {
    wait_for_end(of_ann);
    wait_for_end(of_bob);
  }
};

// One job of each, which waits.
struct WithTwoWaiting : WithRoles {
  std::string of_ann, of_bob;
  WithTwoWaiting() {
    serving.service->queue().pause_all(true);
    of_ann = submit_as(ann, showing(1));
    of_bob = submit_as(bob, showing(2));
  }
  std::string state(const std::string& id) const {
    return json_as(root, "/v1/jobs/" + id).at("state").as_string();
  }
  // The events that somebody hears, as far as the first that says this.
  std::string told(const engine::MadeKey& key, const std::string& until) const {
    Connection connection(serving.port());
    connection.ask("GET", "/v1/events?after=0", "", headers_of(key));
    std::string text;
    while (text.find(until) == std::string::npos && connection.fill(1)) text += connection.take(1);
    return text;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(roles)

BOOST_AUTO_TEST_CASE(each_route_is_for_somebody) {
  const Serving serving([](engine::ServiceOptions& options) {
    options.user_dir = options.queue_file.parent_path() / "user";
    options.log = std::make_shared<engine::LogLines>();
  });
  const std::vector<std::string> patterns = serving.service->router().patterns();
  BOOST_TEST(patterns.size() > 100u);
  for (const std::string& pattern : patterns)
    BOOST_TEST(engine::right_of(pattern).has_value(), pattern);
  BOOST_TEST(!engine::right_of("GET /nobody/knows").has_value());
  BOOST_TEST(!engine::right_of("GET /x/api/queue").has_value());
}

BOOST_FIXTURE_TEST_CASE(each_route_is_asked_by_each_role_and_by_nobody, WithRoles) {
  std::size_t closed = 0, others = 0;
  for (const std::string& pattern : serving.service->router().patterns()) {
    const std::string method = pattern.substr(0, pattern.find(' ')), path = path_in(pattern);
    const int nobody = ask(serving.port(), method, path).status;
    if (is_open(pattern))
      BOOST_TEST(nobody != 401, pattern);
    else
      BOOST_TEST(nobody == 401, pattern);
    const int user = as(ann, method, path).status, admin = as(root, method, path).status;
    BOOST_TEST(admin != 401, pattern);
    BOOST_TEST(admin != 403, pattern);
    switch (*engine::right_of(pattern)) {
      case engine::Right::admin:
        ++closed;
        BOOST_TEST(user == 403, pattern << ": " << user);
        break;
      case engine::Right::own_job:
        ++others;
        BOOST_TEST(user == 404, pattern << ": " << user);
        break;
      case engine::Right::anyone:
        BOOST_TEST(user != 401, pattern);
        BOOST_TEST(user != 403, pattern);
    }
  }
  BOOST_TEST(closed >= 10u);
  BOOST_TEST(others >= 9u);
}

BOOST_FIXTURE_TEST_CASE(history_is_ones_own, WithTwoJobs) {
  BOOST_TEST(keys_of(json_as(ann, "/history")) == Ids{of_ann});
  BOOST_TEST(keys_of(json_as(bob, "/history?max_items=5")) == Ids{of_bob});
  BOOST_TEST(keys_of(json_as(ann, "/history?offset=1")).empty());
  BOOST_TEST(json_as(root, "/history").size() == 2u);
  BOOST_TEST(json_as(ann, "/history/" + of_ann).size() == 1u);
  BOOST_TEST(json_as(ann, "/history/" + of_bob).size() == 0u);
  as(ann, "POST", "/history", "{\"delete\": [\"" + of_bob + "\"]}");
  BOOST_TEST(json_as(root, "/history").size() == 2u);
  as(ann, "POST", "/history", "{\"clear\": true}");
  BOOST_TEST(keys_of(json_as(root, "/history")) == Ids{of_bob});
  as(root, "POST", "/history", "{\"clear\": true}");
  BOOST_TEST(json_as(root, "/history").size() == 0u);
}

BOOST_FIXTURE_TEST_CASE(jobs_are_ones_own, WithTwoJobs) {
  BOOST_TEST(ids_in(json_as(ann, "/api/jobs").at("jobs"), "id") == Ids{of_ann});
  BOOST_TEST(json_as(root, "/api/jobs").at("jobs").size() == 2u);
  BOOST_TEST(as(ann, "GET", "/api/jobs/" + of_ann).status == 200);
  BOOST_TEST(as(ann, "GET", "/api/jobs/" + of_bob).status == 404);
  const Json mine = json_as(ann, "/v1/jobs");
  BOOST_TEST(ids_in(mine.at("jobs"), "id") == Ids{of_ann});
  BOOST_TEST(mine.at("total").as_int64() == 1);
  BOOST_TEST(json_as(root, "/v1/jobs").at("total").as_int64() == 2);
  BOOST_TEST(json_as(root, "/v1/jobs?user=bob").at("total").as_int64() == 1);
  BOOST_TEST(as(ann, "GET", "/v1/jobs?user=bob").status == 403);
  BOOST_TEST(as(ann, "GET", "/v1/jobs/" + of_ann).status == 200);
  for (const char* what : {"", "/events", "/preview"})
    BOOST_TEST(as(ann, "GET", "/v1/jobs/" + of_bob + what).status == 404, what);
  for (const char* what : {"/cancel", "/move", "/pause", "/resume", "/retry"})
    BOOST_TEST(as(ann, "POST", "/v1/jobs/" + of_bob + what).status == 404, what);
  BOOST_TEST(as(ann, "DELETE", "/v1/jobs/" + of_bob).status == 404);
  BOOST_TEST(as(ann, "DELETE", "/v1/jobs/" + of_ann).status == 204);
  const Reply again = as(bob, "POST", "/v1/jobs/" + of_bob + "/retry");
  BOOST_TEST(again.json().at("user").as_string() == "bob");
}

BOOST_FIXTURE_TEST_CASE(a_priority_that_was_given_once_is_not_kept, WithTwoWaiting) {
  as(root, "POST", "/v1/jobs/" + of_bob + "/move", "{\"priority\": 5}");
  as(bob, "POST", "/v1/jobs/" + of_bob + "/cancel");
  const auto priority = [&](const engine::MadeKey& key) {
    const Reply again = as(key, "POST", "/v1/jobs/" + of_bob + "/retry");
    BOOST_TEST_REQUIRE(again.status == 201, again.body);
    return again.json().at("priority").as_int64();
  };
  BOOST_TEST(priority(bob) == 0);
  BOOST_TEST(priority(root) == 5);
}

BOOST_FIXTURE_TEST_CASE(the_queue_shows_ones_own, WithTwoWaiting) {
  const Json queue = json_as(ann, "/queue");
  BOOST_TEST_REQUIRE(queue.at("queue_pending").size() == 1u);
  BOOST_TEST(queue.at("queue_pending").at(std::size_t{0}).at(1).as_string() == of_ann);
  BOOST_TEST(json_as(root, "/queue").at("queue_pending").size() == 2u);
  const Json waiting = json_as(bob, "/v1/queue").at("waiting");
  BOOST_TEST(ids_in(waiting, "id") == Ids{of_bob});
  BOOST_TEST(waiting.at(std::size_t{0}).at("position").as_int64() == 1);  // behind ann's
  BOOST_TEST(json_as(root, "/v1/queue").at("waiting").size() == 2u);
}

BOOST_FIXTURE_TEST_CASE(only_ones_own_jobs_are_cancelled, WithTwoWaiting) {
  as(ann, "POST", "/queue", "{\"delete\": [\"" + of_bob + "\"]}");
  as(ann, "POST", "/api/jobs/" + of_bob + "/cancel");
  as(ann, "POST", "/v1/cancel", "{\"ids\": [\"" + of_bob + "\"]}");
  as(ann, "POST", "/v1/cancel", "{\"user\": \"bob\"}");
  BOOST_TEST(state(of_bob) == "pending");
  as(ann, "POST", "/v1/cancel", "{\"all\": true}");
  BOOST_TEST(state(of_bob) == "pending");
  BOOST_TEST(state(of_ann) == "cancelled");
  as(ann, "POST", "/queue", "{\"clear\": true}");
  BOOST_TEST(state(of_bob) == "pending");
  as(root, "POST", "/queue", "{\"clear\": true}");
  BOOST_TEST(state(of_bob) == "cancelled");
}

BOOST_FIXTURE_TEST_CASE(only_ones_own_job_is_interrupted, WithRoles) {
  const std::string first = submit_as(ann, meeting(1, 3)), second = submit_as(bob, meeting(2, 3));
  const auto running = [&] { return json_as(root, "/queue").at("queue_running").size(); };
  serving.wait_until([&] { return running() == 2; });
  as(ann, "POST", "/interrupt", "{\"prompt_id\": \"" + second + "\"}");
  as(ann, "POST", "/interrupt");
  wait_for_end(first);
  BOOST_TEST(json_as(root, "/v1/jobs/" + first).at("state").as_string() == "cancelled");
  BOOST_TEST(!json_as(root, "/v1/jobs/" + second).at("is_cancel_wanted").as_bool());
  as(root, "POST", "/interrupt");
  wait_for_end(second);
}

BOOST_FIXTURE_TEST_CASE(a_job_belongs_to_who_submits_it, WithRoles) {
  const auto owner = [&](const engine::MadeKey& key, const std::string& more) {
    const Reply made = as(key, "POST", "/v1/jobs", "{\"workflow\": " + showing(1) + more + "}");
    if (made.status != 201) return std::to_string(made.status);
    return made.json().at("jobs").at(std::size_t{0}).at("user").as_string();
  };
  BOOST_TEST(owner(ann, "") == "ann");
  BOOST_TEST(owner(ann, ", \"user\": \"ann\"") == "ann");
  BOOST_TEST(owner(ann, ", \"user\": \"bob\"") == "403");
  BOOST_TEST(owner(root, "") == "root");
  BOOST_TEST(owner(root, ", \"user\": \"bob\"") == "bob");
  // Nor does a user pass others.
  BOOST_TEST(owner(ann, ", \"priority\": 1") == "403");
  BOOST_TEST(owner(ann, ", \"front\": true") == "403");
  BOOST_TEST(owner(ann, ", \"priority\": -1") == "ann");
  BOOST_TEST(owner(root, ", \"priority\": 1, \"front\": true") == "root");
  const auto prompted = [&](const engine::MadeKey& key, const std::string& more) {
    return as(key, "POST", "/prompt", "{\"prompt\": " + showing(1) + more + "}").status;
  };
  BOOST_TEST(prompted(ann, ", \"front\": true") == 403);
  BOOST_TEST(prompted(ann, ", \"number\": -5") == 403);
  BOOST_TEST(prompted(root, ", \"number\": -5") == 200);
}

BOOST_FIXTURE_TEST_CASE(only_administrators_move_jobs_forward, WithTwoWaiting) {
  const auto move = [&](const engine::MadeKey& key, const std::string& to) {
    return as(key, "POST", "/v1/jobs/" + of_ann + "/move", to).status;
  };
  BOOST_TEST(move(ann, "{\"to\": \"back\"}") == 200);
  BOOST_TEST(move(ann, "{\"to\": \"front\"}") == 403);
  BOOST_TEST(move(ann, "{\"priority\": 1}") == 403);
  BOOST_TEST(move(ann, "{\"before\": \"" + of_bob + "\"}") == 403);
  BOOST_TEST(move(root, "{\"to\": \"front\"}") == 200);
}

// A client names itself: who takes the name of another one hears nothing of theirs.
BOOST_FIXTURE_TEST_CASE(messages_reach_whose_job_it_is, WithRoles) {
  SocketClient of_ann(serving.port(), "/ws?clientId=x", headers_of(ann));
  SocketClient of_bob(serving.port(), "/ws?clientId=x", headers_of(bob));
  SocketClient of_root(serving.port(), "/ws?clientId=x", headers_of(root));
  const std::string secret = submit_as(ann, showing(1), ", \"client_id\": \"x\"");
  wait_for_end(secret);
  const std::string own = submit_as(bob, showing(2), ", \"client_id\": \"x\"");
  wait_for_end(own);
  // Each hears its job to the end; what came before has come by then.
  const auto heard = [](SocketClient& client, const std::string& last) {
    std::string text;
    while (true) {
      const Json message = client.read_json();
      BOOST_TEST_REQUIRE(!message.is_null());
      text += engine::write_json(message);
      const Json& data = message.at("data");
      if (message.at("type").as_string() == "execution_success" &&
          data.at("prompt_id").as_string() == last)
        return text;
    }
  };
  BOOST_TEST(heard(of_ann, secret).find(own) == std::string::npos);
  BOOST_TEST(heard(of_bob, own).find(secret) == std::string::npos);
  BOOST_TEST(heard(of_root, own).find(secret) != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(events_are_of_ones_own_jobs, WithTwoWaiting) {
  BOOST_TEST(told(bob, of_bob).find(of_ann) == std::string::npos);  // which came first
  BOOST_TEST(told(root, of_bob).find(of_ann) != std::string::npos);
  // Nor by a WebSocket, and not where the job is named.
  const std::string last = submit_as(bob, showing(5));
  SocketClient all(serving.port(), "/v1/events?after=0", headers_of(bob)),
      named(serving.port(), "/v1/events?after=0&job=" + of_ann, headers_of(bob));
  std::string text;
  for (SocketClient::Message message; text.find(last) == std::string::npos;) {
    message = all.read();
    BOOST_TEST_REQUIRE(!message.is_end);
    text += message.content;
  }
  BOOST_TEST(text.find(of_ann) == std::string::npos);
  serving.service.reset();
  BOOST_TEST(named.read().is_end);
}

BOOST_FIXTURE_TEST_CASE(a_deleted_job_is_told_to_its_owner, WithTwoWaiting) {
  as(ann, "POST", "/v1/jobs/" + of_ann + "/cancel");
  BOOST_TEST(as(ann, "DELETE", "/v1/jobs/" + of_ann).status == 204);
  const std::string next = submit_as(ann, showing(3)), last = submit_as(bob, showing(4));
  BOOST_TEST(told(ann, next).find("\"deleted\"") != std::string::npos);
  BOOST_TEST(told(bob, last).find("\"deleted\"") == std::string::npos);
}

// What was opened with a key ends when that is taken away, at the next change of a job.
BOOST_FIXTURE_TEST_CASE(who_has_lost_a_key_hears_nothing_more, WithRoles) {
  SocketClient of_ann(serving.port(), "/ws", headers_of(ann)),
      of_bob(serving.port(), "/ws", headers_of(bob));
  Connection events(serving.port());
  events.ask("GET", "/v1/events", "", headers_of(ann));
  serving.wait_until([&] {
    return serving.service->clients().count() == 2 && serving.service->events().readers() == 1;
  });
  keep({bob.kept, root.kept});
  const std::string id = submit_as(root, showing(1));
  wait_for_end(id);
  while (!of_ann.read_json().is_null()) continue;  // to its end
  while (events.fill(1)) events.take(1);
  BOOST_TEST(serving.service->clients().count() == 1u);
  BOOST_TEST(of_bob.read_json().at("type").as_string() == "status");
}

BOOST_FIXTURE_TEST_CASE(the_keys_user_is_whose_files_are_kept, WithRoles) {
  BOOST_TEST(as(ann, "POST", "/userdata/notes.txt", "of ann").status == 200);
  BOOST_TEST(as(ann, "GET", "/userdata/notes.txt").body == "of ann");
  BOOST_TEST(as(bob, "GET", "/userdata/notes.txt").status == 404);
  const std::string as_ann = headers_of(bob, "comfy-user: ann\r\n");
  BOOST_TEST(ask(serving.port(), "GET", "/userdata/notes.txt", "", as_ann).status == 404);
  BOOST_TEST(std::filesystem::exists(folder / "user/ann/notes.txt"));
  as(ann, "POST", "/settings", "{\"a\": 1}");
  BOOST_TEST(json_as(ann, "/settings").size() == 1u);
  BOOST_TEST(json_as(bob, "/settings").size() == 0u);
  BOOST_TEST(json_as(ann, "/users").find("users") == nullptr);  // there is nobody to choose
}

BOOST_FIXTURE_TEST_CASE(a_browser_signs_in_with_a_users_key, WithRoles) {
  const auto sign_in = [&](const engine::MadeKey& key) {
    const Reply reply =
        ask(serving.port(), "POST", "/v1/session", "{\"api_key\": \"" + key.text + "\"}");
    BOOST_TEST_REQUIRE(reply.status == 204);
    const std::string cookie = reply.header("set-cookie");
    return "Host: 127.0.0.1\r\nCookie: " + cookie.substr(0, cookie.find(';')) + "\r\n";
  };
  const std::string of_ann = sign_in(ann), of_root = sign_in(root);
  const auto status = [&](const std::string& cookie, const char* method, const char* path) {
    return ask(serving.port(), method, path, "{}", cookie).status;
  };
  const Json session = ask(serving.port(), "GET", "/v1/session", "", of_ann).json();
  BOOST_TEST(session.at("user").as_string() == "ann");
  BOOST_TEST(session.at("role").as_string() == "user");
  BOOST_TEST(status(of_ann, "POST", "/free") == 403);
  BOOST_TEST(status(of_root, "POST", "/free") == 200);
  // What a key says now counts, also for those who have shown it before.
  engine::ApiKey demoted = root.kept;
  demoted.is_admin = false;
  keep({bob.kept, demoted});
  BOOST_TEST(status(of_ann, "GET", "/queue") == 401);
  BOOST_TEST(as(ann, "GET", "/queue").status == 401);
  BOOST_TEST(status(of_root, "POST", "/free") == 403);
  BOOST_TEST(as(bob, "GET", "/queue").status == 200);
}

BOOST_AUTO_TEST_SUITE_END()
