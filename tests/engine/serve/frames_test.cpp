// Messages in several frames, and what these are for: a long message over a slow line is no silence
// of the other side.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/base/text.h"
#include "engine/serve/idle_watch.h"
#include "tests/engine/serve/socket_echo.h"
#include "tests/support/frame_reader.h"

using namespace heddle::engine;
using namespace heddle::test;
using Verdict = IdleWatch::Verdict;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Of many words, so that it becomes smaller and stays long.
std::string text_of(std::size_t bytes) {
  std::string made;
  for (std::uint32_t state = 1; made.size() < bytes;) {
    state = state * 1664525 + 1013904223;
    made += cat(state >> 12, ' ');
  }
  made.resize(bytes);
  return made;
}

std::string wire_of(const std::string& content, bool is_text, bool takes_deflated) {
  MessageFrames frames(message_of(content), is_text, takes_deflated);
  std::string wire;
  for (bool is_last = false; !is_last;) {
    const MessageFrames::Frame frame = frames.next();
    wire += frame.header + std::string(frame.content);
    is_last = frame.is_last;
  }
  return wire;
}

// Sees every frame, answers no ping, and reads when it is asked to.
struct FrameClient {
  Connection connection;
  FrameReader reader;

  FrameClient(std::uint16_t port, int receive_bytes = 0, bool deflates = false)
      : connection(port, receive_bytes),
        reader(deflates ? std::optional<int>(SocketMessage::kWindowBits) : std::nullopt) {
    connection.send(cat(
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n",
        deflates ? "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n" : "",
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
    BOOST_TEST_REQUIRE(connection.read_reply().status == 101);
    while (reader.messages.empty()) BOOST_TEST_REQUIRE(read());  // the server's hello
    reader.messages.clear();
  }
  // What is there, 16 KiB at most; waits for something. False: the end.
  bool read() {
    if (!connection.fill(1)) return false;
    std::string bytes = connection.take(16384);
    reader.read(bytes);
    return true;
  }
  void ping(std::string_view content) {
    connection.send(cat("\x89", char(0x80 | char(content.size())), std::string(4, '\0'), content));
  }
};

ServerLimits idle_after(unsigned ms) {
  ServerLimits limits;
  limits.socket_idle_ms = ms;
  return limits;
}

struct SlowReading {
  bool is_whole = false;
  milliseconds took{0}, longest_pause{0};
  std::size_t pings_within = 0;
};

// It takes `pause` for each 16 KiB, and says nothing all the while.
SlowReading read_slowly(const std::string& content, unsigned idle_ms, milliseconds pause) {
  SocketEcho echo(idle_after(idle_ms));
  FrameClient client(echo.server->port(), 64 << 10);
  echo.wait([&] { return echo.sockets.size() == 1; });
  echo.sockets[0]->send_binary(message_of(content), false);
  SlowReading result;
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point last = begin; client.reader.messages.empty();) {
    if (!client.read()) break;
    std::this_thread::sleep_for(pause);
    const Clock::time_point now = Clock::now();
    result.longest_pause =
        std::max(result.longest_pause, std::chrono::duration_cast<milliseconds>(now - last));
    last = now;
  }
  result.took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  if (!client.reader.messages.empty())
    result.is_whole = client.reader.messages.front().content == content;
  for (const FrameReader::Control& each : client.reader.controls)
    result.pings_within += each.opcode == 9 && each.is_within;
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frames)

BOOST_AUTO_TEST_CASE(frames_have_the_shortest_header) {
  const auto header = [](bool is_text, std::size_t bytes) {
    return MessageFrames(message_of(std::string(bytes, 'x')), is_text, false).next().header;
  };
  BOOST_TEST(header(true, 0) == std::string("\x81\x00", 2));
  BOOST_TEST(header(false, 125) == "\x82\x7d");
  BOOST_TEST(header(true, 126) == std::string("\x81\x7e\x00\x7e", 4));
  BOOST_TEST(header(false, 65'535) == "\x82\x7e\xff\xff");
  BOOST_TEST(header(false, 65'536) == "\x02\x7e\xff\xff");
  const std::string content = text_of(1 << 20);
  MessageFrames deflated(message_of(content), true, true);
  BOOST_TEST(deflated.next().header == "\x41\x7e\xff\xff");
  BOOST_TEST(deflated.next().header == std::string("\x00\x7e\xff\xff", 4));
}

BOOST_AUTO_TEST_CASE(messages_are_whole_behind_their_frames) {
  for (const std::size_t bytes : {0u, 1u, 125u, 126u, 1024u, 65'535u, 65'536u, 131'070u, 700'000u})
    for (const bool is_text : {true, false})
      for (const bool takes_deflated : {true, false})
        BOOST_TEST_CONTEXT(bytes << (is_text ? " text" : "")
                                 << (takes_deflated ? " deflate" : "")) {
          const std::string content = text_of(bytes);
          FrameReader reader(takes_deflated ? std::optional<int>(SocketMessage::kWindowBits)
                                            : std::nullopt);
          const std::string wire = wire_of(content, is_text, takes_deflated);
          reader.read(wire);
          BOOST_TEST_REQUIRE(reader.messages.size() == 1u);
          const FrameReader::Message& got = reader.messages.front();
          BOOST_TEST((got.content == content));
          BOOST_TEST(got.is_text == is_text);
          BOOST_TEST(got.was_deflated == (is_text && takes_deflated && bytes >= 1024));
          BOOST_TEST(got.frames == (wire.size() + 65'538) / 65'539);  // of 65,535 bytes and 4
          BOOST_TEST(!reader.is_within());
        }
}

// The decoder of the tests does notice.
BOOST_AUTO_TEST_CASE(wrong_frames_are_seen) {
  const auto fault = [](std::string_view wire, std::optional<int> window_bits = 12) {
    try {
      FrameReader(window_bits).read(wire);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  BOOST_TEST(fault(std::string_view("\x01\x01"
                                    "a"
                                    "\x80\x01"
                                    "b",
                                    6)) == "");
  BOOST_TEST(fault(std::string_view("\x01\x01"
                                    "a"
                                    "\x81\x01"
                                    "b",
                                    6)) != "");  // begins anew
  BOOST_TEST(fault(std::string_view("\x80\x01"
                                    "b",
                                    3)) != "");  // nothing has begun
  BOOST_TEST(fault(std::string_view("\x41\x01"
                                    "a"
                                    "\xc0\x01"
                                    "b",
                                    6)) != "");  // RSV1 twice
  BOOST_TEST(fault(std::string_view("\xc1\x01"
                                    "a",
                                    3),
                   {}) != "");
  BOOST_TEST(fault(std::string_view("\xc1\x01"
                                    "\xff",
                                    3)) != "");                      // no deflate
  BOOST_TEST(fault(std::string_view("\x82\x7e\x00\x7d", 4)) != "");  // a long length
  BOOST_TEST(fault(std::string_view("\x82\x81"
                                    "1234a",
                                    7)) != "");                      // masked
  BOOST_TEST(fault(std::string_view("\x09\x00", 2)) != "");          // part of a ping
  BOOST_TEST(fault(std::string_view("\x88\x00\x8a\x00", 4)) != "");  // behind the end
}

// A client that waits for its pong would wait for all of the message.
BOOST_AUTO_TEST_CASE(pongs_come_within_a_long_message) {
  const std::string content = text_of(20 << 20);
  for (const bool deflates : {false, true}) {
    SocketEcho echo;
    FrameClient client(echo.server->port(), 64 << 10, deflates);
    echo.wait([&] { return echo.sockets.size() == 1; });
    if (deflates)
      echo.sockets[0]->send_text(message_of(content));
    else
      echo.sockets[0]->send_binary(message_of(content), false);
    echo.sockets[0]->send_text(message_of("behind"));
    BOOST_TEST_REQUIRE(client.read());  // it has begun
    client.ping("one");
    client.ping("two");
    while (client.reader.messages.size() < 2) BOOST_TEST_REQUIRE(client.read());
    BOOST_TEST((client.reader.messages[0].content == content));
    BOOST_TEST(client.reader.messages[0].was_deflated == deflates);
    BOOST_TEST(client.reader.messages[0].frames > 100u);
    BOOST_TEST(client.reader.messages[1].content == "behind");
    BOOST_TEST_REQUIRE(client.reader.controls.size() == 2u);
    BOOST_TEST(client.reader.controls[0].content == "one");
    BOOST_TEST(client.reader.controls[1].content == "two");
    BOOST_TEST(client.reader.controls[1].is_within);
  }
}

// A reader that this machine holds up for a quarter of the idle time is no steady one: then it is
// tried again.
BOOST_AUTO_TEST_CASE(a_long_message_over_a_slow_line_comes_whole) {
  constexpr unsigned kIdle = 600;
  const std::string content = text_of(8 << 20);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const SlowReading got = read_slowly(content, kIdle, milliseconds(3));
    if (!got.is_whole && got.longest_pause > milliseconds(kIdle / 4)) continue;
    BOOST_TEST(got.is_whole);
    BOOST_TEST(got.took.count() > 2 * kIdle);
    BOOST_TEST(got.pings_within > 1u);
    return;
  }
  BOOST_TEST(false, "no attempt was left alone by this machine");
}

BOOST_AUTO_TEST_CASE(who_reads_nothing_is_cut_off) {
  SocketEcho echo(idle_after(200));
  const FrameClient silent(echo.server->port()), full(echo.server->port(), 64 << 10);
  echo.wait([&] { return echo.sockets.size() == 2; });
  echo.sockets.back()->send_binary(message_of(text_of(20 << 20)), false);
  echo.wait([&] { return echo.closed == 2; });
}

// Whoever has said goodbye first.
BOOST_AUTO_TEST_CASE(who_does_not_hang_up_is_cut_off) {
  ServerLimits limits;
  limits.header_ms = 1000;  // of the handshake, too
  SocketEcho echo(limits);
  int clients = 0;
  const auto farewells = [&](const auto& end) {
    FrameClient client(echo.server->port());
    ++clients;
    echo.wait([&] { return int(echo.sockets.size()) == clients; });
    end(client);
    echo.wait([&] { return echo.closed == clients; });
    while (client.read()) {
    }
    const auto& seen = client.reader.controls;
    return std::count_if(seen.begin(), seen.end(),
                         [](const auto& each) { return each.opcode == 8; });
  };
  BOOST_TEST(farewells([](FrameClient& client) {
               client.connection.send(std::string("\x88\x80\0\0\0\0", 6));
             }) == 1);
  BOOST_TEST(farewells([](FrameClient& client) {
               client.connection.send("\xff\x80mask");  // no frame
             }) == 1);
  BOOST_TEST(farewells([&](FrameClient&) { echo.sockets.back()->finish(); }) == 1);
}

// Only an answer brings a third ping: one that is not answered is the last.
BOOST_AUTO_TEST_CASE(who_answers_pings_stays) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    SocketEcho echo(idle_after(400));
    FrameClient client(echo.server->port());
    std::size_t answered = 0;
    while (client.reader.controls.size() < 3 && client.read())
      for (; answered < client.reader.controls.size(); ++answered)
        client.connection.send(std::string("\x8a\x80\0\0\0\0", 6));
    if (client.reader.controls.size() >= 3) return;
  }
  BOOST_TEST(false, "nobody stayed");
}

BOOST_AUTO_TEST_CASE(life_is_what_is_heard_and_what_is_taken) {
  ServerLimits limits = idle_after(60'000);
  limits.write_bytes_per_second = 1000;
  IdleWatch watch(limits);
  BOOST_TEST((watch.ask() == Verdict::ping));  // silent for a half
  watch.hear();
  BOOST_TEST((watch.ask() == Verdict::ping));
  BOOST_TEST((watch.ask() == Verdict::ping));
  watch.take(20'000);
  watch.take(10'000);
  BOOST_TEST((watch.ask() == Verdict::ping));
  BOOST_TEST((watch.ask() == Verdict::ping));
  watch.take(29'999);  // slower than may be
  BOOST_TEST((watch.ask() == Verdict::gone));
  IdleWatch silent(limits);
  BOOST_TEST((silent.ask() == Verdict::ping));
  BOOST_TEST((silent.ask() == Verdict::gone));
}

BOOST_AUTO_TEST_SUITE_END()
