// A server whose WebSockets send back what they get, and which remembers who was there.
#pragma once

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/serve/http_server.h"
#include "tests/engine/serve/http_client.h"

namespace heddle::test {

struct SocketEcho {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<engine::WebSocket>> sockets;
  int closed = 0;
  std::unique_ptr<engine::HttpServer> server;

  explicit SocketEcho(engine::ServerLimits limits = {}) {
    engine::ServerHandlers handlers;
    handlers.check = [](const engine::HttpRequest&) { return std::nullopt; };
    handlers.answer = [](const engine::HttpRequest&) { return engine::text_response("plain"); };
    handlers.connect = [this](const engine::HttpRequest& head,
                              const std::shared_ptr<engine::WebSocket>& socket)
        -> std::optional<engine::WebSocketEvents> {
      if (head.path != "/ws") return {};
      socket->send_text(std::make_shared<const engine::SocketMessage>("hello " + head.query));
      const std::lock_guard lock(mutex);
      sockets.push_back(socket);
      changed.notify_all();
      // Held, it would hold itself where the server stops first.
      return engine::WebSocketEvents{
          [weak = std::weak_ptr(socket)](std::string_view message, bool is_text) {
            const std::shared_ptr<engine::WebSocket> socket = weak.lock();
            auto copy = std::make_shared<const engine::SocketMessage>(std::string(message));
            if (is_text)
              socket->send_text(copy);
            else
              socket->send_binary(copy, false);
          },
          [this] {
            const std::lock_guard inner(mutex);
            ++closed;
            changed.notify_all();
          }};
    };
    server = std::make_unique<engine::HttpServer>(engine::ServerOptions{.limits = limits},
                                                  std::move(handlers));
  }
  ~SocketEcho() {
    server->stop();
    sockets.clear();
  }
  template <class F>
  void wait(F until) {
    std::unique_lock lock(mutex);
    BOOST_TEST_REQUIRE(changed.wait_for(lock, std::chrono::minutes(1), until));
  }
};

inline engine::WebSocket::Message message_of(std::string text) {
  return std::make_shared<const engine::SocketMessage>(std::move(text));
}

}  // namespace heddle::test
