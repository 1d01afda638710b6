// One end of a stream socket between the engine and a worker: messages with a kind, a body and
// perhaps a descriptor. Any thread sends; one at a time receives.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/descriptor.h"
#include "engine/base/guarded.h"

namespace heddle::engine {

// What the other end says by going away.
struct ChannelClosed : std::exception {
  const char* what() const noexcept override { return "the other process has gone"; }
};

struct Message {
  std::uint32_t kind = 0;
  std::string body;
  int descriptor = -1;  // the receiver's to close; below 0: none
};

class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}
  // Called about every 20 ms while the other end is waited for; what it throws ends the wait, and
  // then the channel is of no use any more.
  void while_waiting(std::function<void()> call);
  // Throws ChannelClosed, io for what the system refuses.
  void send(std::uint32_t kind, std::string_view body, int descriptor = -1);
  Message receive();
  void shut_down();  // as if both ends had gone; any thread
  int socket() const { return socket_.number(); }

 private:
  void write(const char* data, std::size_t bytes, int descriptor);
  void fill(std::size_t bytes);  // until so many are in buffer_
  void waited() const {
    if (while_waiting_) while_waiting_();
  }

  FileDescriptor socket_;
  std::function<void()> while_waiting_;
  Mutex sending_;
  std::string buffer_;  // received, from begin_ on not taken yet
  std::size_t begin_ = 0;
  int descriptor_ = -1;
};

// Two ends, neither of which a program that is started gets. Throws io.
std::pair<int, int> socket_pair();

}  // namespace heddle::engine
