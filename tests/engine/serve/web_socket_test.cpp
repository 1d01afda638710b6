// WebSockets over the server.
#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "tests/engine/serve/socket_echo.h"

using namespace heddle::engine;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(web_socket)

BOOST_AUTO_TEST_CASE(messages_go_both_ways_in_order) {
  SocketEcho echo;
  SocketClient client(echo.server->port(), "/ws?clientId=a");
  BOOST_TEST(client.reply.status == 101);
  BOOST_TEST(client.reply.header("sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  BOOST_TEST(client.read().content == "hello clientId=a");
  client.send("text");
  client.send(std::string(70'000, 'b'), 2);
  client.send("ping", 9);
  BOOST_TEST(client.read().content == "text");
  const SocketClient::Message binary = client.read();
  BOOST_TEST(!binary.is_text);
  BOOST_TEST(binary.content.size() == 70'000u);
  echo.wait([&] { return echo.sockets.size() == 1; });
  for (int i = 0; i < 200; ++i) echo.sockets[0]->send_text(message_of(cat(i)));
  for (int i = 0; i < 200; ++i) BOOST_TEST(client.read().content == cat(i));
}

BOOST_AUTO_TEST_CASE(the_server_hears_when_a_client_goes) {
  SocketEcho echo;
  { SocketClient client(echo.server->port(), "/ws"); }
  echo.wait([&] { return echo.closed == 1; });
  SocketClient client(echo.server->port(), "/ws");
  client.send("\x03\xe8", 8);
  echo.wait([&] { return echo.closed == 2; });
}

BOOST_AUTO_TEST_CASE(the_server_can_close) {
  SocketEcho echo;
  SocketClient client(echo.server->port(), "/ws");
  client.read();
  echo.wait([&] { return echo.sockets.size() == 1; });
  echo.sockets[0]->close();
  BOOST_TEST(client.read().is_end);
  echo.wait([&] { return echo.closed == 1; });
  echo.sockets[0]->send_text(message_of("too late"));
}

BOOST_AUTO_TEST_CASE(what_breaks_the_protocol_ends_the_connection) {
  ServerLimits limits;
  limits.socket_message_bytes = 1000;
  SocketEcho echo(limits);
  {
    SocketClient client(echo.server->port(), "/ws");
    client.read();
    client.send("not masked", 1, false);
    BOOST_TEST(client.read().is_end);
  }
  {
    SocketClient client(echo.server->port(), "/ws");
    client.read();
    client.send(std::string(1001, 'x'));
    BOOST_TEST(client.read().is_end);
  }
  {
    SocketClient client(echo.server->port(), "/ws");
    client.read();
    client.send("\xff\xfe");  // no UTF-8
    BOOST_TEST(client.read().is_end);
  }
  SocketClient elsewhere(echo.server->port(), "/elsewhere");
  BOOST_TEST((elsewhere.reply.status == 404 || elsewhere.read().is_end));
}

// It reads nothing: pictures are left out, and in the end it is cut off. The others get all.
BOOST_AUTO_TEST_CASE(a_slow_client_harms_nobody) {
  ServerLimits limits;
  limits.socket_drop_bytes = 100'000;
  limits.socket_backlog_bytes = 1'000'000;
  SocketEcho echo(limits);
  SocketClient slow(echo.server->port(), "/ws?slow");
  echo.wait([&] { return echo.sockets.size() == 1; });
  SocketClient quick(echo.server->port(), "/ws?quick");
  echo.wait([&] { return echo.sockets.size() == 2; });
  BOOST_TEST(quick.read().content == "hello quick");
  constexpr std::size_t kPicture = 50'000;
  const auto picture = message_of(std::string(kPicture, 'p'));
  for (int i = 0; i < 2000; ++i) echo.sockets[0]->send_binary(picture, true);
  BOOST_TEST(echo.closed == 0);
  for (int i = 0; i < 20; ++i) {
    echo.sockets[1]->send_binary(picture, true);
    BOOST_TEST(quick.read().content.size() == kPicture);
  }
  echo.sockets[0]->send_text(message_of("the end"));
  std::size_t pictures = 0;
  BOOST_TEST(slow.read().content == "hello slow");
  while (!slow.read().is_text) ++pictures;
  BOOST_TEST(pictures > 0u);
  BOOST_TEST(pictures < 2000u);
  const auto text = message_of(std::string(kPicture, 't'));
  for (int i = 0; i < 2000; ++i) echo.sockets[0]->send_text(text);
  echo.wait([&] { return echo.closed == 1; });
  echo.sockets[1]->send_text(message_of("still here"));
  BOOST_TEST(quick.read().content == "still here");
}

BOOST_AUTO_TEST_SUITE_END()
