// What goes wrong outside of the server: more connections than there is room for, clocks that are
// set back, a disk that is full. Typed answers, and nothing is lost.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <deque>

#include "engine/base/log.h"
#include "engine/queue/database.h"
#include "tests/engine/serve/v1_fixture.h"
#include "tests/support/comes_about.h"
#include "tests/support/refusal.h"

using namespace heddle;
using namespace heddle::test;
using engine::cat;
using engine::Json;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kMostConnections = 1000;
#else
constexpr std::size_t kMostConnections = 10'000;
#endif

// Both ends of a connection are in this process.
std::size_t connections_that_fit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(kMostConnections, (limit.rlim_cur - 200) / 2);
}

// As on a full disk, no file of the process grows beyond so many bytes.
class NoLargeFiles {
 public:
  explicit NoLargeFiles(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~NoLargeFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  NoLargeFiles(const NoLargeFiles&) = delete;

 private:
  using Handler = void (*)(int);
  const Handler handler_;
  rlimit before_{};
};

std::string value_of(const std::string& metrics, const std::string& name) {
  const std::size_t at = metrics.find("\n" + name + " ");
  BOOST_TEST_REQUIRE(at != std::string::npos, name);
  const std::size_t begin = at + name.size() + 2;
  return metrics.substr(begin, metrics.find('\n', begin) - begin);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(faults)

// Each is answered, or refused in words; then there is room again.
BOOST_AUTO_TEST_CASE(ten_thousand_connections_are_answered_or_refused) {
  const std::size_t count = connections_that_fit(), room = count / 4;
  Serving serving([&](engine::ServiceOptions& options) {
    options.server.limits.connections = room;
    options.server.limits.idle_ms = 600'000;
  });
  const std::string id = serving.submit(meeting(1, 2));  // runs all the while
  std::deque<Connection> connections;
  for (std::size_t i = 0; i < count; ++i) {
    connections.emplace_back(serving.port());
    connections.back().send("GET /prompt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }
  std::size_t answered = 0, refused = 0;
  for (Connection& connection : connections) {
    // What is sent to a closed connection may take the refusal with it.
    const int status = connection.read_reply().status;
    if (status == 200) ++answered;
    if (status == 503 || status == 0) ++refused;
  }
  BOOST_TEST(answered + refused == count);
  BOOST_TEST(answered > 0u);
  BOOST_TEST(answered <= room);
  connections.clear();
  serving.wait_until([&] {
    Connection again(serving.port());
    return again.ask("GET", "/queue").status == 200;
  });
  serving.submit(meeting(2, 2));
  BOOST_TEST(serving.ended(id).at("status").at("completed").as_bool());
}

// Without a byte of the body: the header is enough.
BOOST_AUTO_TEST_CASE(a_body_of_a_gigabyte_is_refused_before_it_is_read) {
  const Serving serving;
  for (const char* path : {"/upload/image", "/prompt", "/v1/jobs", "/userdata/x"}) {
    Connection connection(serving.port());
    connection.send(std::string("POST ") + path +
                    " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1073741824\r\n\r\n");
    BOOST_TEST(connection.read_reply().status == 413, path);
  }
}

// Its end is not told: it is refused as soon as it is too long.
BOOST_AUTO_TEST_CASE(a_body_without_an_end_is_refused_at_the_limit) {
  const Serving serving(
      [](engine::ServiceOptions& options) { options.server.limits.body_bytes = 1 << 20; });
  Connection connection(serving.port());
  connection.send("POST /prompt HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  for (int i = 0; i < 17; ++i) connection.send(chunk);
  // What is sent to a closed connection may take the refusal with it.
  const int status = connection.read_reply().status;
  BOOST_TEST((status == 413 || status == 0), status);
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_set_back_confuses_nobody) {
  std::atomic<std::int64_t> now = 1'700'000'000'000;
  const auto clock = [&] { return now.load(); };
  V1Serving serving([&](engine::ServiceOptions& options) {
    options.queue.clock = options.runner.clock = options.retention.clock = clock;
    options.retention.history = std::chrono::hours(24 * 30);
  });
  const std::string first = serving.submit(showing(1));
  serving.ended(first);
  now -= 3'600'000;
  const std::string waits = serving.submit(meeting(2, 2));
  serving.wait_until([&] { return serving.running() == 1; });
  now -= 3'600'000;
  const std::string last = serving.submit(meeting(3, 2));
  serving.wait_for(waits, "done");
  serving.wait_for(last, "done");
  // In the order of what happened, and nothing took less than no time.
  const Json history = serving.get("/history").json();
  BOOST_TEST(history.members().front().key == first);
  const std::string metrics = serving.get("/metrics").body;
  for (const char* name : {"heddle_job_wait_seconds_sum", "heddle_job_run_seconds_sum"}) {
    const double seconds = std::stod(value_of(metrics, name));
    BOOST_TEST(seconds >= 0, name);
    BOOST_TEST(seconds < 3000, name << " " << seconds);
  }
  // Events go on where they were, also in a later server.
  const auto number_of_first = [&] {
    Connection connection(serving.port());
    connection.ask("GET", "/v1/events?after=0");
    std::string text;
    while (text.find('\n') == std::string::npos && connection.fill(1)) text += connection.take(1);
    return std::stoull(text.substr(text.find("id: ") + 4));
  };
  const auto before = number_of_first();
  BOOST_TEST(before > 0u);
  BOOST_TEST(serving.expect(200, "GET", "/v1/jobs").at("total").as_int64() == 3);
}

// Nobody else gets the queue's lock while a service has it.
BOOST_FIXTURE_TEST_CASE(a_client_of_its_own_does_not_lock_the_queue, V1Serving) {
  const std::string first = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  for (const char* sql : {"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "SELECT count(*) FROM jobs"}) {
    const auto code = [&] {
      try {
        engine::Database(options.queue_file).run(sql);
      } catch (const engine::Error& error) {
        return error.code();
      }
      return engine::Code::internal;
    };
    BOOST_TEST((code() == engine::Code::unsupported), sql);
  }
  const std::string second = submit(meeting(2, 2));
  for (const std::string& id : {first, second})
    BOOST_TEST(ended(id).at("status").at("completed").as_bool());
}

BOOST_FIXTURE_TEST_CASE(a_queue_that_somebody_has_locked_is_refused_and_lost_in_no_part,
                        V1Serving) {
  const std::string done = submit(showing(1));
  ended(done);
  service->queue().pause_all(true);
  const std::string waits = submit(showing(2));
  service.reset();
  {
    engine::Database other(options.queue_file);
    other.run("BEGIN IMMEDIATE");
    const engine::Error refusal = refusal_of([&] { start(); });
    BOOST_TEST((refusal.code() == engine::Code::unsupported));
    for (const char* part : {"queue.db", "Another process uses it"})
      BOOST_TEST(refusal.full().find(part) != std::string::npos, refusal.full());
    other.run("ROLLBACK");
  }
  start();
  BOOST_TEST((get("/history").json().find(done) != nullptr));
  service->queue().pause_all(false);
  BOOST_TEST(ended(waits).at("status").at("completed").as_bool());
}

// Whatever it throws is its job's alone.
BOOST_FIXTURE_TEST_CASE(what_a_plugin_throws_fails_one_job_and_no_other, V1Serving) {
  const std::string first = submit(meeting(1, 2));
  wait_until([&] { return running() == 1; });
  for (const char* how : {"number", "exception", "error"}) {
    const std::string id =
        submit_v1(cat(R"({"1": {"class_type": "test.fail", "inputs": {"how": ")", how,
                      R"("}}, "2": {"class_type": "t.Show", "inputs": {"value": ["1", 0]}}})"));
    wait_for(id, "failed");
    BOOST_TEST(!job(id).at("error").at("message").as_string().empty(), how);
  }
  BOOST_TEST(running() == 1u);
  const std::string second = submit(meeting(2, 2));
  for (const std::string& id : {first, second})
    BOOST_TEST(ended(id).at("status").at("completed").as_bool());
}

// Wherever it is thrown: one request or one connection ends by it, and the server goes on.
BOOST_AUTO_TEST_CASE(what_the_servers_handlers_throw_ends_one_connection) {
  engine::set_log_sink([](engine::Level, std::string_view) {});
  std::atomic<int> closed = 0;
  engine::ServerHandlers handlers;
  handlers.check = [](const engine::HttpRequest& head) -> std::optional<engine::HttpResponse> {
    if (head.path == "/check") throw std::runtime_error("check");
    return {};
  };
  handlers.answer = [](const engine::HttpRequest&) { return engine::text_response("plain"); };
  handlers.connect = [&](const engine::HttpRequest& head, const auto&) {
    if (head.path == "/connect") throw std::runtime_error("connect");
    engine::WebSocketEvents events;
    events.received = [](std::string_view, bool) { throw std::runtime_error("received"); };
    events.closed = [&, path = head.path] {
      ++closed;
      if (path == "/closed") throw std::runtime_error("closed");
    };
    return std::optional(std::move(events));
  };
  const engine::HttpServer server({}, std::move(handlers));
  for (int round = 0; round < 3; ++round) {
    BOOST_TEST(ask(server.port(), "GET", "/check").status == 500);
    BOOST_TEST(SocketClient(server.port(), "/connect").read().is_end);
    SocketClient receives(server.port(), "/received");
    receives.send("text");
    BOOST_TEST(receives.read().is_end);
    { const SocketClient leaves(server.port(), "/closed"); }
    BOOST_TEST(comes_about([&] { return closed == 2 * (round + 1); }));
  }
  BOOST_TEST(ask(server.port(), "GET", "/").status == 200);
  engine::set_log_sink({});
}

// It says so, keeps what it has, and goes on as soon as there is room.
BOOST_AUTO_TEST_CASE(a_file_that_cannot_grow_refuses_what_has_no_room) {
  engine::set_log_sink([](engine::Level, std::string_view) {});
  V1Serving serving;
  serving.service->queue().pause_all(true);
  const std::string kept = serving.submit(showing(1));
  const std::string large = ", \"extra_data\": {\"x\": \"" + std::string(8'000'000, 'x') + "\"}";
  {
    const NoLargeFiles limit(4'000'000);
    const Reply prompt = serving.post("/prompt", "{\"prompt\": " + showing(2) + large + "}");
    BOOST_TEST(prompt.status == 500);
    BOOST_TEST(prompt.json().at("error").as_string().find("queue.db") != std::string::npos);
    const Reply job = serving.post("/v1/jobs", "{\"workflow\": " + showing(2) + large + "}");
    BOOST_TEST(job.status == 500);
    BOOST_TEST(job.json().at("error").at("code").as_string() == "input/output");
    BOOST_TEST(serving.pending() == 1u);
  }
  BOOST_TEST(serving.post("/prompt", "{\"prompt\": " + showing(2) + large + "}").status == 200);
  serving.service->queue().pause_all(false);
  serving.ended(kept);
  engine::set_log_sink({});
}

// It is neither lost nor run again: the disk is full from its claim on, until its end was refused.
BOOST_AUTO_TEST_CASE(the_end_of_a_job_waits_for_room_on_the_disk) {
  std::atomic<bool> is_refused{false}, is_first{true};
  engine::set_log_sink([&](engine::Level, std::string_view text) {
    if (text.find("its end cannot be written") != text.npos) is_refused = true;
  });
  std::optional<NoLargeFiles> limit;
  V1Serving serving([&](engine::ServiceOptions& options) {
    options.runner.clock = [&] {
      if (is_first.exchange(false)) limit.emplace(0);
      return std::int64_t{1000};
    };
  });
  const std::string id = serving.submit(showing(1));
  serving.wait_until([&] { return is_refused.load(); });
  const std::size_t running = serving.running();
  limit.reset();
  BOOST_TEST(running == 1u);
  const Json entry = serving.ended(id);
  BOOST_TEST(entry.at("status").at("completed").as_bool());
  BOOST_TEST(entry.at("outputs").size() == 1u);
  BOOST_TEST(serving.service->queue().find(id)->generation == 1);
  engine::set_log_sink({});
}

BOOST_AUTO_TEST_SUITE_END()
