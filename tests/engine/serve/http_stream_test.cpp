// Bodies that come by and by.
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/base/text.h"
#include "engine/serve/http_server.h"
#include "tests/engine/serve/http_client.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

// Every request gets a stream, which the test holds.
struct Streams {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<HttpStream>> streams;
  std::unique_ptr<HttpServer> server;

  explicit Streams(ServerLimits limits = {}) {
    ServerHandlers handlers;
    handlers.check = [](const HttpRequest&) { return std::nullopt; };
    handlers.answer = [this](const HttpRequest& request) {
      if (request.path == "/plain") return text_response("plain");
      HttpResponse response = text_response("");
      response.stream = StreamedBody{[this](const std::shared_ptr<HttpStream>& stream) {
                                       const std::lock_guard lock(mutex);
                                       streams.push_back(stream);
                                       changed.notify_all();
                                     },
                                     "beat", "farewell"};
      return response;
    };
    handlers.connect = [](const HttpRequest&, const auto&) { return std::nullopt; };
    server = std::make_unique<HttpServer>(ServerOptions{.limits = limits}, std::move(handlers));
  }
  ~Streams() {
    server->stop();
    streams.clear();
  }
  std::shared_ptr<HttpStream> stream(std::size_t i = 0) {
    std::unique_lock lock(mutex);
    BOOST_TEST_REQUIRE(
        changed.wait_for(lock, std::chrono::minutes(1), [&] { return streams.size() > i; }));
    return streams[i];
  }
};

struct Reader : Connection {
  explicit Reader(const Streams& streams) : Connection(streams.server->port()) {
    send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    head = read_reply();
  }
  std::string read(std::size_t bytes) {
    BOOST_TEST_REQUIRE(fill(bytes));
    return take(bytes);
  }
  Reply head;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(http_stream)

BOOST_AUTO_TEST_CASE(pieces_come_as_they_are_sent_and_in_order) {
  Streams streams;
  Reader reader(streams);
  BOOST_TEST(reader.head.status == 200);
  BOOST_TEST(reader.head.header("connection") == "close");
  BOOST_TEST(reader.head.header("content-length") == "");
  const auto stream = streams.stream();
  BOOST_TEST(stream->send("one"));
  BOOST_TEST(reader.read(3) == "one");
  for (int i = 0; i < 1000; ++i) stream->send(cat(i % 10));
  stream->close();
  const std::string digits = reader.read(1000);
  for (std::size_t i = 0; i < digits.size(); ++i)
    if (digits[i] != char('0' + i % 10)) BOOST_TEST(false, "out of order at " << i);
  BOOST_TEST(reader.is_closed());
}

BOOST_AUTO_TEST_CASE(whoever_sends_learns_that_nobody_reads) {
  Streams streams;
  auto reader = std::make_unique<Reader>(streams);
  streams.stream();
  reader.reset();
  const auto soon = [](const auto& is_so) {
    for (int tries = 0; !is_so() && tries < 6000; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    BOOST_TEST(is_so());
  };
  soon([&] { return !streams.streams[0]->send("x"); });
  streams.streams.clear();
  soon([&] { return streams.server->connections() == 0; });
}

BOOST_AUTO_TEST_CASE(silence_is_broken_now_and_then) {
  ServerLimits limits;
  limits.stream_idle_ms = 20;
  Streams streams(limits);
  Reader reader(streams);
  BOOST_TEST(reader.read(8) == "beatbeat");
}

// It reads nothing until too much waits: then it gets what was on its way, and the farewell.
BOOST_AUTO_TEST_CASE(a_slow_reader_is_cut_off_and_told) {
  ServerLimits limits;
  limits.stream_backlog_bytes = 1'000'000;
  Streams streams(limits);
  Reader slow(streams);
  const auto stream = streams.stream();
  Reader quick(streams);
  const auto other = streams.stream(1);
  const std::string piece(50'000, 'p');
  for (int i = 0; i < 2000; ++i) stream->send(piece);
  other->send("still here");
  BOOST_TEST(quick.read(10) == "still here");
  std::size_t bytes = 0;
  while (slow.fill(bytes + 1)) ++bytes;
  const std::string all = slow.take(bytes);
  BOOST_TEST(all.ends_with("pfarewell"));
  BOOST_TEST(all.size() < 2000u * 50'000u);
  BOOST_TEST((all.size() - 8) % piece.size() == 0u);  // no piece is torn
}

BOOST_AUTO_TEST_CASE(a_head_has_no_body) {
  Streams streams;
  Connection connection(streams.server->port());
  BOOST_TEST(connection.ask("HEAD", "/").status == 200);
  BOOST_TEST(connection.ask("GET", "/plain").body == "plain");
  BOOST_TEST(streams.streams.empty());
}

BOOST_AUTO_TEST_CASE(a_server_ends_while_somebody_reads) {
  auto streams = std::make_unique<Streams>();
  Reader reader(*streams);
  streams->stream()->send("x");
  streams.reset();
  while (reader.fill(1)) reader.take(1);
}

BOOST_AUTO_TEST_SUITE_END()
