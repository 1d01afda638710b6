// What clients hear over WebSockets.
#include "tests/engine/serve/service_fixture.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

std::string socket_target(const std::string& client) { return "/ws?clientId=" + client; }

std::string type_of(const Json& message) { return message.at("type").as_string(); }

// All until the end of the prompt, without those about the queue.
std::vector<Json> messages_of_run(SocketClient& client) {
  std::vector<Json> all;
  while (true) {
    Json message = client.read_json();
    BOOST_TEST_REQUIRE(!message.is_null());
    if (type_of(message) == "status") continue;
    const bool is_end = type_of(message) == "executing" && message.at("data").at("node").is_null();
    all.push_back(std::move(message));
    if (is_end) return all;
  }
}

std::string types(const std::vector<Json>& messages) {
  std::vector<std::string> names;
  for (const Json& message : messages) names.push_back(type_of(message));
  return engine::join(names, " ");
}

const Json& data_of(const std::vector<Json>& messages, const std::string& type) {
  for (const Json& message : messages)
    if (type_of(message) == type) return message.at("data");
  BOOST_TEST_REQUIRE(false, "there is no " << type);
  return messages.front();
}

std::string of_client(const std::string& client) {
  return cat(", \"client_id\": \"", client, "\"");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(messages)

BOOST_FIXTURE_TEST_CASE(a_client_is_told_its_id_and_the_queue, Serving) {
  SocketClient named(port(), "/ws?clientId=tab");
  const Json first = named.read_json();
  BOOST_TEST(type_of(first) == "status");
  BOOST_TEST(first.at("data").at("sid").as_string() == "tab");
  BOOST_TEST(first.at("data").at("status").at("exec_info").at("queue_remaining").as_int64() == 0);
  SocketClient unnamed(port(), "/api/ws");
  const std::string id = unnamed.read_json().at("data").at("sid").as_string();
  BOOST_TEST(id.size() == 32u);
  BOOST_TEST(id.find_first_not_of("0123456789abcdef") == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(features_are_told_when_they_are_asked_for_first, Serving) {
  SocketClient client(port(), "/ws?clientId=tab");
  client.read_json();
  client.send("{\"type\": \"feature_flags\", \"data\": {\"supports_preview_metadata\": true}}");
  const Json answer = client.read_json();
  BOOST_TEST(type_of(answer) == "feature_flags");
  BOOST_TEST(answer.at("data").at("supports_preview_metadata").as_bool());
  BOOST_TEST(answer.at("data").at("max_upload_size").as_int64() == 104857600);
  BOOST_TEST((answer.at("data") == get("/features").json()));
  // Not a second time, and not for other words.
  SocketClient other(port(), "/ws?clientId=other");
  other.read_json();
  for (const char* words : {"hello", "{\"type\": \"feature_flags\"}", "[]"}) other.send(words);
  submit(showing(1), of_client("other"));
  for (const Json& message : messages_of_run(other))
    BOOST_TEST(type_of(message) != "feature_flags");
}

BOOST_FIXTURE_TEST_CASE(a_run_is_told_in_comfyuis_order, Serving) {
  SocketClient client(port(), socket_target("tab"));
  const std::string id = submit(showing(5), of_client("tab"));
  const std::vector<Json> all = messages_of_run(client);
  BOOST_TEST(types(all) ==
             "execution_start execution_cached "
             "progress_state executing progress_state progress progress_state "
             "progress_state executing progress_state progress executed progress_state "
             "execution_success executing");
  for (const Json& message : all)
    BOOST_TEST(message.at("data").at("prompt_id").as_string() == id, type_of(message));
  for (const char* type : {"execution_start", "execution_cached", "execution_success"})
    BOOST_TEST(data_of(all, type).at("timestamp").as_int64() > 1'600'000'000'000, type);
  BOOST_TEST(data_of(all, "executing").at("node").as_string() == "1");
  BOOST_TEST(data_of(all, "executing").at("display_node").as_string() == "1");
  const Json& executed = data_of(all, "executed");
  BOOST_TEST(executed.at("node").as_string() == "2");
  BOOST_TEST(engine::write_json(executed.at("output")) == "{\"text\":[5]}");
  const Json& progress = data_of(all, "progress");
  BOOST_TEST(progress.at("value").as_int64() == 1);
  BOOST_TEST(progress.at("max").as_int64() == 1);
  const Json& states = all[all.size() - 3].at("data").at("nodes");
  BOOST_TEST(states.size() == 2u);
  BOOST_TEST(engine::write_json(states.at("2")) ==
             cat("{\"value\":1,\"max\":1,\"state\":\"finished\",\"node_id\":\"2\",\"prompt_id\":\"",
                 id,
                 "\",\"display_node_id\":\"2\",\"parent_node_id\":null,\"real_node_id\":\"2\"}"));
}

// When the end is told the history has it.
BOOST_FIXTURE_TEST_CASE(the_end_comes_after_the_history, Serving) {
  SocketClient client(port(), socket_target("tab"));
  for (int i = 0; i < 20; ++i) {
    const std::string id = submit(showing(i), of_client("tab"));
    messages_of_run(client);
    BOOST_TEST((get("/history/" + id).json().find(id) != nullptr));
  }
}

BOOST_FIXTURE_TEST_CASE(what_is_cached_is_told_and_does_not_start, Serving) {
  SocketClient client(port(), socket_target("tab"));
  submit(showing(5), of_client("tab"));
  messages_of_run(client);
  submit(showing(5), of_client("tab"));
  const std::vector<Json> all = messages_of_run(client);
  BOOST_TEST(
      types(all) ==
      "execution_start execution_cached executed progress_state execution_success executing");
  bool has_output = false;
  for (const Json& node : data_of(all, "execution_cached").at("nodes").as_array())
    has_output |= node.as_string() == "2";
  BOOST_TEST(has_output);
  BOOST_TEST(engine::write_json(data_of(all, "executed").at("output")) == "{\"text\":[5]}");
}

BOOST_FIXTURE_TEST_CASE(a_failure_says_where_and_what, Serving) {
  SocketClient client(port(), socket_target("tab"));
  const std::string id = submit(failing("it is broken"), of_client("tab"));
  const std::vector<Json> all = messages_of_run(client);
  const Json& error = data_of(all, "execution_error");
  BOOST_TEST(error.at("prompt_id").as_string() == id);
  BOOST_TEST(error.at("node_id").as_string() == "1");
  BOOST_TEST(error.at("node_type").as_string() == "t.Meet");
  const std::string text = error.at("exception_message").as_string();
  BOOST_TEST(text.find("it is broken") != std::string::npos, text);
  BOOST_TEST(text.ends_with("\n"));
  BOOST_TEST(error.at("exception_type").as_string() == "ValueError");
  BOOST_TEST(error.at("traceback").is_array());
  BOOST_TEST(engine::write_json(error.at("current_inputs").at("value")) == "[3]");
  BOOST_TEST(engine::write_json(error.at("current_outputs")) == "[\"1\",\"2\"]");
  BOOST_TEST(error.at("executed").size() == 0u);
  const Json entry = ended(id);
  BOOST_TEST(entry.at("status").at("status_str").as_string() == "error");
  BOOST_TEST(entry.at("status").at("messages").at(2).at(std::size_t{0}).as_string() ==
             "execution_error");
}

BOOST_FIXTURE_TEST_CASE(an_interrupt_is_told_to_all_where_nobody_asked, Serving) {
  SocketClient client(port(), socket_target("tab"));
  SocketClient other(port(), socket_target("other"));
  submit(meeting(1, 2), of_client("tab"));
  std::vector<Json> all;  // the first node runs from here on
  while (all.empty() || type_of(all.back()) != "executing") all.push_back(client.read_json());
  post("/interrupt", "");
  all = messages_of_run(client);
  const Json& interrupted = data_of(all, "execution_interrupted");
  BOOST_TEST(interrupted.at("node_id").as_string() == "1");
  BOOST_TEST(interrupted.at("node_type").as_string() == "t.Meet");
  submit(meeting(2, 2));
  wait_until([&] { return running() == 1; });
  post("/interrupt", "");
  for (SocketClient* each : {&client, &other}) {
    Json message = each->read_json();
    while (type_of(message) != "execution_interrupted") {
      BOOST_TEST(!type_of(message).starts_with("execut"));  // of nobody's run, or of others'
      message = each->read_json();
    }
  }
}

BOOST_FIXTURE_TEST_CASE(of_a_run_of_nobody_progress_is_told_to_all, Serving) {
  SocketClient client(port(), socket_target("tab"));
  ended(submit(showing(1)));
  submit(showing(2), of_client("tab"));
  std::vector<Json> before;
  for (Json message = client.read_json(); type_of(message) != "execution_start";
       message = client.read_json())
    if (type_of(message) != "status") before.push_back(message);
  BOOST_TEST(types(before) ==
             "progress_state progress_state progress progress_state "
             "progress_state progress_state progress progress_state");
}

// Two at once, each to its own client and nothing to the other.
BOOST_FIXTURE_TEST_CASE(jobs_run_beside_each_other, Serving) {
  SocketClient first(port(), socket_target("first")), second(port(), socket_target("second"));
  const std::string a = submit(meeting(1, 2), of_client("first"));
  const std::string b = submit(meeting(2, 2), of_client("second"));
  for (const auto& [client, id] : {std::pair(&first, a), {&second, b}})
    for (const Json& message : messages_of_run(*client))
      BOOST_TEST(message.at("data").at("prompt_id").as_string() == id);
}

BOOST_FIXTURE_TEST_CASE(who_comes_back_learns_what_runs, Serving) {
  const std::string id = submit(meeting(1, 2), of_client("tab"));
  wait_until([&] { return service->queue().counts().running == 1; });
  std::string node;
  wait_until([&] {
    SocketClient client(port(), socket_target("tab"));
    client.read_json();
    const Json message = client.read_json();
    if (type_of(message) != "executing" || message.at("data").at("node").is_null()) return false;
    node = message.at("data").at("node").as_string();
    return true;
  });
  BOOST_TEST(node == "1");
  // The one that came last has the id, also when the first one goes.
  auto old = std::make_unique<SocketClient>(port(), socket_target("tab"));
  old->read_json();
  SocketClient now(port(), socket_target("tab"));
  now.read_json();
  old.reset();
  wait_until([&] { return service->clients().count() == 1; });
  post("/interrupt", "");
  BOOST_TEST(types(messages_of_run(now)).ends_with("execution_interrupted executing"));
}

BOOST_FIXTURE_TEST_CASE(everybody_is_told_how_long_the_queue_is, Serving) {
  SocketClient client(port(), socket_target("tab"));
  client.read_json();
  service->queue().pause_all(true);
  submit(showing(1));
  submit(showing(2));
  std::int64_t remaining = 0;
  while (remaining != 2) {
    const Json message = client.read_json();
    BOOST_TEST(type_of(message) == "status");
    BOOST_TEST(message.at("data").find("sid") == nullptr);
    remaining = message.at("data").at("status").at("exec_info").at("queue_remaining").as_int64();
  }
}

// However many change the queue at once: clients show the last number until the next change.
BOOST_FIXTURE_TEST_CASE(the_last_status_is_what_is_so_at_last, Serving) {
  service->queue().pause_all(true);
  for (int round = 0; round < 20; ++round) {
    SocketClient client(port(), socket_target(cat("client", round)));
    client.read_json();
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
          engine::NewJob job;
          job.prompt = showing(1);
          for (int i = 0; i < 5; ++i) service->queue().submit({job});
        });
    }
    // Its answer comes behind all that was sent before.
    client.send(R"({"type": "feature_flags", "data": {}})");
    std::int64_t told = -1;
    for (Json message = client.read_json(); type_of(message) != "feature_flags";
         message = client.read_json()) {
      BOOST_TEST_REQUIRE(type_of(message) == "status");
      told = message.at("data").at("status").at("exec_info").at("queue_remaining").as_int64();
    }
    BOOST_TEST(told == service->queue().counts().pending);
  }
}

BOOST_AUTO_TEST_SUITE_END()
