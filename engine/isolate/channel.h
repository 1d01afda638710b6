// One end of a stream socket between the engine and a worker: messages with a kind, a body and
// perhaps a descriptor. Any thread sends; one at a time receives.
#pragma once

#include <cstdint>
#include <deque>
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

// The longest body. Both ends hold to it: a wild worker must not make the engine ask for all
// memory.
inline constexpr std::uint64_t kMostMessageBytes = std::uint64_t{256} << 20;

class Channel {
 public:
  // Descriptors come from the engine alone; whoever does not take them has the system close them.
  enum class Descriptors { taken, refused };
  explicit Channel(int socket, Descriptors descriptors = Descriptors::refused)
      : socket_(socket), takes_descriptors_(descriptors == Descriptors::taken) {}
  // Called about every 20 ms while the other end is waited for, and with each part of a message
  // that is not whole; what it throws ends the wait, and then the channel is of no use any more.
  void while_waiting(std::function<void()> call);
  // Throws ChannelClosed, unsupported for a body that is too long, io for what the system refuses.
  void send(std::uint32_t kind, std::string_view body, int descriptor = -1);
  // Throws internal for what no message begins with. Memory grows with what has come alone.
  Message receive();
  bool has_unread() const { return begin_ < buffer_.size(); }  // the receiver's thread
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
  const bool takes_descriptors_;
  std::deque<FileDescriptor> descriptors_;  // of messages in buffer_
};

// The descriptor under a number above those of input, output and errors, into which whoever writes
// to these would write; below 0, with errno, where there is none. Takes it.
int above_standard(int descriptor);

// Two ends, neither of which a program that is started gets. Throws io.
std::pair<int, int> socket_pair();

}  // namespace heddle::engine
