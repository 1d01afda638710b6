// Who listens over WebSockets, by the id that a client gives itself, and what is sent to whom. Any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/serve/http_server.h"

namespace heddle::engine {

class Clients {
 public:
  // What a client is told as soon as it is there, and of features when it asks.
  struct Greeting {
    std::function<std::vector<Json>(const std::string& client)> messages;
    std::function<Json()> features;
  };
  explicit Clients(Greeting greeting) : greeting_(std::move(greeting)) {}

  // Empty: an id is made. A second connection takes the place of the first, which stays open.
  WebSocketEvents connect(std::string client, const std::shared_ptr<WebSocket>& socket);

  // To the one of this id; nothing where it is not there.
  void send(const std::string& client, const Json& message);
  void send_to_all(const Json& message);
  // A picture as it stands behind the header of its frame; `is_jpeg`, else PNG. A client that wants
  // to know more gets `about`, a JSON object, with it. `client` empty: to all, without.
  void send_picture(const std::string& client, const Json& about, bool is_jpeg,
                    std::string_view picture);

  // A text about what a node does, in place of the one before it. `client` empty: to all.
  void send_text_of(const std::string& client, std::string_view node, std::string_view text);

  // Before the server goes.
  void forget_all();
  std::size_t count() const;

 private:
  struct Client {
    std::shared_ptr<WebSocket> socket;
    std::uint64_t number = 0;  // of the connection
    bool wants_about = false;
    bool has_spoken = false;
  };
  void received(const std::string& id, std::uint64_t number, std::string_view text);
  void closed(const std::string& id, std::uint64_t number);

  const Greeting greeting_;
  mutable std::mutex mutex_;
  std::map<std::string, Client> clients_;  // mutex_
  std::uint64_t last_ = 0;                 // mutex_
};

}  // namespace heddle::engine
