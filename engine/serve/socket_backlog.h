// The messages that wait to be sent over one WebSocket, under the limits of a slow client. Any
// thread.
#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "engine/serve/http_server.h"

namespace heddle::engine {

class SocketBacklog {
 public:
  struct Waiting {
    WebSocket::Message message;
    bool is_text = true;
  };
  enum class Pushed {
    first,     // somebody has to take it, once for this and for what comes until then
    behind,    // it goes out with others
    left_out,  // the client is slow, and this may be dropped; or nothing is taken any more
    too_much,  // more waits than may; this is not taken, and nothing is any more
  };

  // The limits have to outlive it.
  explicit SocketBacklog(const ServerLimits& limits) : limits_(limits) {}
  SocketBacklog(const SocketBacklog&) = delete;

  Pushed push(WebSocket::Message message, bool is_text, bool may_drop);
  std::optional<Waiting> take();    // the next one. It counts as waiting until it is sent
  void is_sent(std::size_t bytes);  // a message of so many bytes
  void end();                       // nothing more is taken
  void drop();                      // the same, and what waits does not go out

 private:
  const ServerLimits& limits_;
  std::mutex mutex_;
  std::deque<Waiting> waiting_;  // mutex_
  std::size_t bytes_ = 0;        // mutex_; of these, and of what is taken and not sent
  bool is_awaited_ = false;      // mutex_; take() will be called, or was by who is still at it
  bool has_ended_ = false;       // mutex_
};

}  // namespace heddle::engine
