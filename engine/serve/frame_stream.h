// What is written to one WebSocket. Boost.Beast reads through it, and writes what is its own: the
// answer to the handshake and the control frames. Messages are put into frames here, as many as
// there are into one write, from the one copy that all clients share. All of it is one queue, so
// no frame comes into the middle of another; Beast's go before the frames that wait, also of a
// message that has begun. Heavy: it sees Boost.Beast.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/serve/idle_watch.h"
#include "engine/serve/server_stream.h"
#include "engine/serve/socket_backlog.h"

namespace heddle::engine {

// Whose connection it is; it lives while something is being written. In the strand.
class FrameWriter {
 public:
  virtual ~FrameWriter() = default;
  virtual void all_is_written() = 0;   // for now
  virtual void farewell_begins() = 0;  // a close frame is the next that is written, and the last
  virtual void writing_failed() = 0;   // once; nothing is written any more
};

// One strand, but for backlog(). The limits have to outlive it.
class FrameStream {
 public:
  using executor_type = ServerStream::executor_type;
  using next_layer_type = ServerStream;

  FrameStream(ServerStream stream, const ServerLimits& limits);
  FrameStream(const FrameStream&) = delete;

  // Before anything is written.
  void begin(std::weak_ptr<FrameWriter> writer) { writer_ = std::move(writer); }
  // Whether the client takes texts deflated as SocketMessage does it. Before the first message.
  void set_deflating(bool takes_deflated) { is_deflating_ = takes_deflated; }

  // What is to be written; whoever pushes the first has to see to it that write() is called.
  SocketBacklog& backlog() { return backlog_; }
  // It hears of all that is read, and of what the other side takes.
  IdleWatch& watch() { return watch_; }

  // Writes what waits. all_is_written() may be called within it.
  void write();
  // Of all that waits, once the executor runs nothing any more. The caller holds the writer: what
  // is let go may be the last that does.
  void let_go();

  // What Boost.Beast asks of a stream.
  executor_type get_executor() { return stream_.get_executor(); }
  ServerStream& next_layer() { return stream_; }
  const ServerStream& next_layer() const { return stream_; }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    stream_.async_read_some(buffers, [this, handler = std::forward<Handler>(handler)](
                                         beast::error_code failure, std::size_t bytes) mutable {
      if (bytes > 0) watch_.hear();
      handler(failure, bytes);
    });
  }
  // Done when all of it is written; ahead of the messages that wait.
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    std::string bytes;
    for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers);
         ++at) {
      const asio::const_buffer next(*at);
      bytes.append(static_cast<const char*>(next.data()), next.size());
    }
    push_own(std::move(bytes), Completion(std::forward<Handler>(handler)));
  }

 private:
  // `head` and then `content`.
  struct Frame {
    WebSocket::Message message;  // nullptr: Beast's, all of it in `head`
    std::string head;
    std::string_view content;        // of the message, as it is sent
    std::optional<Completion> done;  // of Beast's
    bool is_last = true;             // of the message

    std::size_t size() const { return head.size() + content.size(); }
  };
  void push_own(std::string bytes, Completion done);
  void write_all();
  void take_next();
  bool begin_message();
  void list_rest();
  bool write_at_once();
  void write_later();
  void drop_written(std::size_t bytes);
  void fail(beast::error_code failure);

  ServerStream stream_;
  SocketBacklog backlog_;
  IdleWatch watch_;
  std::weak_ptr<FrameWriter> writer_;
  bool is_deflating_ = false;

  std::optional<MessageFrames> begun_;  // not all of its frames are in writing_ yet
  std::deque<Frame> own_;               // of Beast
  std::deque<Frame> writing_;           // what the next writes, or the one under way, are of
  std::size_t written_ = 0;             // bytes of the first of these
  std::vector<asio::const_buffer> rest_;
  // is_behind_: a write has had to wait since all was written.
  bool is_writing_ = false, is_behind_ = false, has_failed_ = false;
};

// How a WebSocket ends.
inline void teardown(beast::role_type role, FrameStream& stream, beast::error_code& failure) {
  teardown(role, stream.next_layer(), failure);
}
template <class Handler>
void async_teardown(beast::role_type role, FrameStream& stream, Handler&& handler) {
  async_teardown(role, stream.next_layer(), std::forward<Handler>(handler));
}

}  // namespace heddle::engine
