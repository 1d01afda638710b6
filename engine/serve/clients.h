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
#include "engine/serve/caller.h"
#include "engine/serve/http_server.h"

namespace heddle::engine {

// Who is told something of a job: the clients of this id ("": all), of those who may see what
// belongs to `user`.
struct Audience {
  std::string client, user;
};

// A picture as it stands behind the header of its frame.
struct SentPicture {
  std::string_view bytes;
  bool is_jpeg = true;   // else PNG
  bool may_drop = true;  // for a client that is slow to read
};

class Clients {
 public:
  // What a client is told as soon as it is there, and of features when it asks.
  struct Greeting {
    std::function<std::vector<Json>(const std::string& client, const Caller& caller)> messages;
    std::function<Json()> features;
  };
  explicit Clients(Greeting greeting) : greeting_(std::move(greeting)) {}

  // Empty: an id is made. A second connection of a user takes the place of the first, which stays
  // open.
  WebSocketEvents connect(std::string client, const Caller& caller,
                          const std::shared_ptr<WebSocket>& socket);

  void send(const Audience& to, const Json& message);
  void send_to_all(const Json& message);
  // A client that is meant by its id and wants to know more gets `about`, a JSON object, with it.
  void send_picture(const Audience& to, const Json& about, const SentPicture& picture);

  // A text about what a node does, in place of the one before it.
  void send_text_of(const Audience& to, std::string_view node, std::string_view text);

  // Closes the connections of those who are gone.
  void close_all(const std::function<bool(const Caller&)>& is_gone);
  // Before the server goes.
  void forget_all();
  std::size_t count() const;

 private:
  using Name = std::pair<std::string, std::string>;  // its id, and whose it is
  struct Client {
    std::shared_ptr<WebSocket> socket;
    Caller caller;
    std::uint64_t number = 0;  // of the connection
    bool wants_about = false;
    bool has_spoken = false;
  };
  void received(const Name& name, std::uint64_t number, std::string_view text);
  void closed(const Name& name, std::uint64_t number);
  template <class F>
  void each(const Audience& to, F call) const;  // with mutex_

  const Greeting greeting_;
  mutable std::mutex mutex_;
  std::map<Name, Client> clients_;  // mutex_
  std::uint64_t last_ = 0;          // mutex_
};

}  // namespace heddle::engine
