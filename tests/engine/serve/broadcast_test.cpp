// What goes to many WebSockets at once: whole, in order, and held up by none of them.
#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/base/text.h"
#include "engine/serve/clients.h"
#include "engine/serve/write_pacer.h"
#include "tests/engine/serve/socket_echo.h"
#include "tests/support/comes_about.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kClients = 50;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr int kClients = 50;
#else
constexpr int kClients = 200;
#endif
#else
constexpr int kClients = 200;
#endif

constexpr const char* kDeflate =
    "Host: 127.0.0.1\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";

// By a window of its own: nothing of earlier messages may be needed.
std::string inflated_message(std::string bytes) {
  bytes.append("\x00\x00\xff\xff", 4);
  std::string content(1 << 20, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -SocketMessage::kWindowBits) != Z_OK) return "broken";
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = uInt(content.size());
  const int code = ::inflate(&stream, Z_SYNC_FLUSH);
  content.resize(content.size() - stream.avail_out);
  inflateEnd(&stream);
  return code == Z_OK ? content : "broken";
}

std::string plain(const SocketClient::Message& message) {
  return message.is_deflated ? inflated_message(message.content) : message.content;
}

// No two pictures are the same, at no place.
std::string picture(int number, std::size_t bytes) {
  std::string made;
  for (std::uint32_t state = std::uint32_t(number) * 7919 + 1; made.size() < bytes;) {
    state = state * 1664525 + 1013904223;
    made += char(state >> 24);
  }
  return made;
}

// The messages of a job's step, as `heddle serve` sends them to all.
struct Broadcast {
  Clients clients{{[](const std::string&, const Caller&) { return std::vector<Json>{}; },
                   [] { return Json::object(); }}};
  std::unique_ptr<HttpServer> server;

  Broadcast() {
    ServerHandlers handlers;
    handlers.check = [](const HttpRequest&) { return std::nullopt; };
    handlers.answer = [](const HttpRequest&) { return text_response("plain"); };
    handlers.connect = [this](const HttpRequest&, const std::shared_ptr<WebSocket>& socket) {
      return std::optional(clients.connect("", operator_caller(), socket));
    };
    server = std::make_unique<HttpServer>(ServerOptions{}, std::move(handlers));
  }
  ~Broadcast() {
    server->stop();
    clients.forget_all();
  }
  void send(int step, const std::string& text, const std::string& bytes) {
    Json state = Json::object(), progress = Json::object();
    clients.send_to_all(state.set("type", "progress_state").set("data", text));
    clients.send_to_all(progress.set("type", "progress").set("data", step));
    clients.send_picture({}, Json::object(), {bytes, true, true});
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(broadcast)

BOOST_AUTO_TEST_CASE(two_hundred_clients_get_the_same_in_order) {
  constexpr int kSteps = 20, kReaders = 4;
  Broadcast all;
  std::vector<std::unique_ptr<SocketClient>> clients;
  for (int i = 0; i < kClients; ++i)
    clients.push_back(i % 2 == 0
                          ? std::make_unique<SocketClient>(all.server->port(), "/ws")
                          : std::make_unique<SocketClient>(all.server->port(), "/ws", kDeflate));
  BOOST_TEST_REQUIRE(comes_about([&] { return all.clients.count() >= kClients; }));
  std::vector<std::string> wanted;
  for (int step = 0; step < kSteps; ++step) {
    const std::string text(2000, char('a' + step));
    wanted.push_back(cat("{\"type\":\"progress_state\",\"data\":\"", text, "\"}"));
    wanted.push_back(cat("{\"type\":\"progress\",\"data\":", step, "}"));
    wanted.push_back(std::string("\0\0\0\1\0\0\0\1", 8) + picture(step, 20'000));
  }
  std::vector<std::string> faults(kReaders);
  {
    std::vector<std::jthread> readers;
    for (int r = 0; r < kReaders; ++r)
      readers.emplace_back([&, r] {
        try {
          for (std::size_t m = 0; m < wanted.size(); ++m)
            for (int i = r; i < kClients; i += kReaders) {
              const SocketClient::Message got = clients[std::size_t(i)]->read();
              const bool shall_deflate = i % 2 == 1 && m % 3 == 0;
              if (plain(got) == wanted[m] && got.is_text == (m % 3 != 2) &&
                  got.is_deflated == shall_deflate && !got.is_end)
                continue;
              faults[std::size_t(r)] = cat("client ", i, ", message ", m);
              return;
            }
        } catch (const std::exception& error) {
          faults[std::size_t(r)] = error.what();
        }
      });
    for (int step = 0; step < kSteps; ++step)
      all.send(step, std::string(2000, char('a' + step)), picture(step, 20'000));
  }
  for (const std::string& fault : faults) BOOST_TEST(fault == "");
}

// What others read does not wait for the one that does not.
BOOST_AUTO_TEST_CASE(a_slow_one_of_many_is_cut_off_alone) {
  ServerLimits limits;
  limits.socket_backlog_bytes = 4'000'000;
  constexpr std::size_t kMany = 20, kBytes = 100'000;
  SocketEcho echo(limits);
  std::vector<std::unique_ptr<SocketClient>> clients;
  for (std::size_t i = 0; i < kMany; ++i) {
    clients.push_back(std::make_unique<SocketClient>(echo.server->port(), "/ws"));
    echo.wait([&] { return echo.sockets.size() == i + 1; });
    BOOST_TEST(clients[i]->read().content == "hello ");
  }
  int rounds = 0;
  const auto is_cut_off = [&] {
    const std::lock_guard lock(echo.mutex);
    return echo.closed > 0;
  };
  for (; !is_cut_off() && rounds < 1000; ++rounds) {
    const WebSocket::Message message = message_of(picture(rounds, kBytes));
    for (const auto& socket : echo.sockets) socket->send_binary(message, false);
    for (std::size_t i = 1; i < kMany; ++i)
      BOOST_TEST_REQUIRE((clients[i]->read().content == message->content()));
  }
  BOOST_TEST(rounds >= 40);
  echo.wait([&] { return echo.closed == 1; });
}

// With bytes on their way, which nobody reads: by a reset, and by ending one's own side alone.
BOOST_AUTO_TEST_CASE(a_client_may_leave_within_a_message) {
  SocketEcho echo;
  auto leaves = std::make_unique<SocketClient>(echo.server->port(), "/ws");
  echo.wait([&] { return echo.sockets.size() == 1; });
  SocketClient ends(echo.server->port(), "/ws");
  echo.wait([&] { return echo.sockets.size() == 2; });
  SocketClient stays(echo.server->port(), "/ws");
  echo.wait([&] { return echo.sockets.size() == 3; });
  for (SocketClient* each : {leaves.get(), &ends, &stays})
    BOOST_TEST(each->read().content == "hello ");
  const WebSocket::Message large = message_of(picture(1, 20 << 20));
  echo.sockets[0]->send_binary(large, false);
  echo.sockets[1]->send_binary(large, false);
  BOOST_TEST_REQUIRE(leaves->await());
  leaves.reset();
  BOOST_TEST_REQUIRE(ends.await());
  ends.end_sending();
  echo.wait([&] { return echo.closed == 2; });
  for (const auto& socket : echo.sockets) socket->send_text(message_of("who is there?"));
  BOOST_TEST(stays.read().content == "who is there?");
  while (!ends.read().is_end) {
  }
}

BOOST_AUTO_TEST_CASE(pongs_come_between_messages) {
  constexpr int kRounds = 50;
  SocketEcho echo;
  SocketClient client(echo.server->port(), "/ws", kDeflate);
  echo.wait([&] { return echo.sockets.size() == 1; });
  client.read();
  for (int i = 0; i < kRounds; ++i) {
    client.send(cat("ping ", i), 9);
    echo.sockets[0]->send_binary(message_of(picture(i, 300'000)), false);
    echo.sockets[0]->send_text(message_of(std::string(5000, char('a' + i % 26))));
    client.send(cat("pang ", i), 9);
    BOOST_TEST_REQUIRE((client.read().content == picture(i, 300'000)));
    BOOST_TEST_REQUIRE(plain(client.read()) == std::string(5000, char('a' + i % 26)));
  }
  client.send("the end");
  BOOST_TEST(client.read().content == "the end");
  BOOST_TEST_REQUIRE(client.pongs.size() == std::size_t(2 * kRounds));
  for (int i = 0; i < kRounds; ++i) {
    BOOST_TEST(client.pongs[std::size_t(2 * i)] == cat("ping ", i));
    BOOST_TEST(client.pongs[std::size_t(2 * i + 1)] == cat("pang ", i));
  }
}

// A whole frame stands behind whole frames, whoever closes.
BOOST_AUTO_TEST_CASE(a_farewell_comes_behind_all_that_was_sent) {
  SocketEcho echo;
  auto client = std::make_unique<SocketClient>(echo.server->port(), "/ws");
  echo.wait([&] { return echo.sockets.size() == 1; });
  client->read();
  for (int i = 0; i < 100; ++i)
    echo.sockets[0]->send_binary(message_of(picture(i, 100'000)), false);
  echo.sockets[0]->finish();
  echo.sockets[0]->send_text(message_of("too late"));
  for (int i = 0; i < 100; ++i) BOOST_TEST_REQUIRE((client->read().content == picture(i, 100'000)));
  const SocketClient::Message last = client->read();
  BOOST_TEST(last.is_end);
  BOOST_TEST((last.farewell == "\x03\xe8"));  // 1000, a normal end; not a cut
  client->send("\x03\xe8", 8);
  client.reset();
  echo.wait([&] { return echo.closed == 1; });
}

// It waits for none of them: with it all end. Also those whose pong waits behind a message that
// they do not read.
BOOST_AUTO_TEST_CASE(the_server_ends_while_clients_are_written_to) {
  constexpr std::size_t kReadNothing = 30, kPinging = 3;
  std::vector<std::unique_ptr<SocketClient>> clients;
  {
    SocketEcho echo;
    for (std::size_t i = 0; i < kReadNothing + 1; ++i) {
      clients.push_back(std::make_unique<SocketClient>(echo.server->port(), "/ws"));
      echo.wait([&] { return echo.sockets.size() == i + 1; });
      BOOST_TEST(clients[i]->read().content == "hello ");
    }
    const WebSocket::Message large = message_of(picture(1, 20 << 20));
    for (std::size_t i = 0; i < kReadNothing; ++i) echo.sockets[i]->send_binary(large, false);
    for (std::size_t i = 0; i < kPinging; ++i) {
      BOOST_TEST_REQUIRE(clients[i]->await());  // being written, and more than the system takes
      clients[i]->send("are you there?", 9);
    }
    // Meanwhile the server comes to the pings.
    clients.back()->send("and you?");
    BOOST_TEST(clients.back()->read().content == "and you?");
    std::jthread sender([&](const std::stop_token& stop) {
      const WebSocket::Message small = message_of("x");
      while (!stop.stop_requested())
        for (const auto& socket : echo.sockets) socket->send_text(small);
    });
    echo.server->stop();
  }
  for (const auto& client : clients)
    while (!client->read().is_end) {
    }
}

BOOST_AUTO_TEST_CASE(texts_are_deflated_for_whom_it_was_agreed_with) {
  SocketEcho echo;
  const auto offer = [&](const std::string& parameters) {
    return std::make_unique<SocketClient>(
        echo.server->port(), "/ws",
        cat("Host: 127.0.0.1\r\nSec-WebSocket-Extensions: permessage-deflate; "
            "client_max_window_bits",
            parameters, "\r\n"));
  };
  const std::string long_text(3000, 't');
  for (const char* parameters : {"", "; server_no_context_takeover", "; server_max_window_bits=15",
                                 "; server_max_window_bits=12", "; client_no_context_takeover"}) {
    const auto client = offer(parameters);
    const std::string agreed = client->reply.header("sec-websocket-extensions");
    BOOST_TEST(agreed.find("server_no_context_takeover") != agreed.npos, agreed);
    BOOST_TEST(!client->read().is_deflated);
    for (int i = 0; i < 2; ++i) {
      client->send(long_text);
      const SocketClient::Message got = client->read();
      BOOST_TEST(got.is_deflated);
      BOOST_TEST(got.content.size() < 100u);
      BOOST_TEST((inflated_message(got.content) == long_text));
    }
    client->send(long_text, 2);
    BOOST_TEST(!client->read().is_deflated);
  }
  const auto small = offer("; server_max_window_bits=10");
  small->read();
  small->send(long_text);
  const SocketClient::Message got = small->read();
  BOOST_TEST(!got.is_deflated);
  BOOST_TEST((got.content == long_text));
}

BOOST_AUTO_TEST_CASE(what_is_deflated_is_smaller_and_agreed_upon) {
  BOOST_TEST(!takes_deflated(""));
  BOOST_TEST(takes_deflated("permessage-deflate"));
  BOOST_TEST(takes_deflated("permessage-deflate; server_max_window_bits=12"));
  BOOST_TEST(!takes_deflated("permessage-deflate; server_max_window_bits=11"));
  BOOST_TEST(SocketMessage(std::string(1000, 'a')).deflated() == "");
  BOOST_TEST(SocketMessage(picture(1, 5000)).deflated() == "");
  for (const std::size_t bytes : {2000u, 65'531u, 500'000u})
    BOOST_TEST((inflated_message(SocketMessage(std::string(bytes, 'a')).deflated()) ==
                std::string(bytes, 'a')));
}

BOOST_AUTO_TEST_CASE(writes_to_many_wait_for_each_other) {
  using std::chrono::microseconds;
  BOOST_TEST((write_pause(1, microseconds(5)) == microseconds(0)));
  BOOST_TEST((write_pause(200, microseconds(5)) == microseconds(64'000)));
  BOOST_TEST((write_pause(200, microseconds(10)) == microseconds(128'000)));
  BOOST_TEST((write_pause(100'000, microseconds(5)) == microseconds(250'000)));
  struct Counted : WritePacer::Writer {
    int writes = 0;
    void write_soon() override { ++writes; }
    void write_now() override { ++writes; }
  };
  boost::asio::io_context io;
  std::atomic<std::size_t> writers = 0;
  WritePacer pacer(io, writers);
  const auto first = std::make_shared<Counted>(), second = std::make_shared<Counted>();
  {
    const WritePacer::Place one(writers);
    pacer.add(first);
    BOOST_TEST(first->writes == 1);
  }
  std::vector<std::unique_ptr<WritePacer::Place>> places;
  for (int i = 0; i < 20; ++i) places.push_back(std::make_unique<WritePacer::Place>(writers));
  pacer.add(first);
  pacer.add(second);
  BOOST_TEST(first->writes == 1);
  io.run();
  BOOST_TEST(first->writes == 2);
  BOOST_TEST(second->writes == 1);
}

BOOST_AUTO_TEST_SUITE_END()
