// A WebSocket client of a library reads what the server has cut into frames. Chromium's does in the
// tests of pages (tests/e2e/page_test.py).
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/test/unit_test.hpp>

#include "engine/base/text.h"
#include "tests/engine/serve/socket_echo.h"

using namespace heddle::engine;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(beast_client)

BOOST_AUTO_TEST_CASE(long_messages_are_read) {
  namespace beast = boost::beast;
  namespace websocket = beast::websocket;
  using tcp = boost::asio::ip::tcp;
#if defined(HEDDLE_ADDRESS_SANITIZER) || defined(HEDDLE_THREAD_SANITIZER)
  constexpr std::size_t kBytes =
      2 << 20;  // the client is slow there: it would look like one that hangs
#else
  constexpr std::size_t kBytes = 20 << 20;
#endif
  std::string content;
  for (int i = 0; content.size() < kBytes; ++i) content += cat(i * 7919, ' ');
  SocketEcho echo;
  for (const bool deflates : {false, true}) {
    boost::asio::io_context io;
    websocket::stream<tcp::socket> client(io);
    client.next_layer().connect({boost::asio::ip::make_address("127.0.0.1"), echo.server->port()});
    websocket::permessage_deflate deflate;
    deflate.client_enable = deflates;
    client.set_option(deflate);
    client.read_message_max(64 << 20);
    client.handshake("127.0.0.1", "/ws");
    beast::flat_buffer buffer;
    client.read(buffer);
    BOOST_TEST(beast::buffers_to_string(buffer.data()) == "hello ");
    echo.wait([&] { return echo.sockets.size() == (deflates ? 2u : 1u); });
    for (const bool is_text : {true, false}) {
      if (is_text)
        echo.sockets.back()->send_text(message_of(content));
      else
        echo.sockets.back()->send_binary(message_of(content), false);
      client.ping("meanwhile");
      buffer.clear();
      client.read(buffer);
      BOOST_TEST(client.got_text() == is_text);
      BOOST_TEST((beast::buffers_to_string(buffer.data()) == content));
    }
    client.close(websocket::close_code::normal);
  }
}

BOOST_AUTO_TEST_SUITE_END()
