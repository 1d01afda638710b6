// The bytes of one connection: over TCP or a Unix socket, with TLS or without. Heavy: it sees
// Boost.Beast. One strand.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#ifdef HEDDLE_WITH_OPENSSL
#include <boost/asio/ssl/context.hpp>
#endif

namespace heddle::engine {

namespace asio = boost::asio;
namespace beast = boost::beast;

// What is called when a read or a write is done. Of one type, whatever it is made of: what the
// libraries make of each type that they see costs a compiler more than all else here.
class Completion {
 public:
  template <class Handler>
  explicit Completion(Handler&& handler)
      : held_(std::make_unique<Holder<std::decay_t<Handler>>>(std::forward<Handler>(handler))) {}
  void operator()(beast::error_code failure, std::size_t bytes = 0) {
    const std::unique_ptr<Held> held = std::move(held_);
    held->call(failure, bytes);
  }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual void call(beast::error_code failure, std::size_t bytes) = 0;
  };
  template <class Handler>
  struct Holder : Held {
    template <class Given>
    explicit Holder(Given&& given) : handler(std::forward<Given>(given)) {}
    void call(beast::error_code failure, std::size_t bytes) override { handler(failure, bytes); }
    Handler handler;
  };
  std::unique_ptr<Held> held_;
};

// The first buffers of a sequence, without empty ones: as much as is read or written at once.
template <class Buffer>
class SomeBuffers {
 public:
  template <class Sequence>
  explicit SomeBuffers(const Sequence& all) {
    for (auto at = asio::buffer_sequence_begin(all); at != asio::buffer_sequence_end(all); ++at) {
      const Buffer next(*at);
      if (next.size() == 0) continue;
      list_[count_++] = next;
      if (count_ == list_.size()) return;
    }
  }
  const Buffer* begin() const { return list_.data(); }
  const Buffer* end() const { return list_.data() + count_; }

 private:
  std::array<Buffer, 16> list_;
  std::size_t count_ = 0;
};

// Reads and writes as Boost.Beast asks of a stream. Movable while nothing is under way.
class ServerStream {
 public:
  using Plain = beast::basic_stream<asio::generic::stream_protocol>;
  using Socket = Plain::socket_type;
  using executor_type = Plain::executor_type;
  using next_layer_type = Plain;

  explicit ServerStream(Socket socket);
#ifdef HEDDLE_WITH_OPENSSL
  ServerStream(Socket socket, asio::ssl::context& tls);
#endif
  ServerStream(ServerStream&&) noexcept;
  ServerStream& operator=(ServerStream&&) noexcept;
  ~ServerStream();

  executor_type get_executor() { return plain_->get_executor(); }
  // For times; what is read and written there is not what the other side means.
  Plain& next_layer() { return *plain_; }
  const Plain& next_layer() const { return *plain_; }
  Socket& socket() { return plain_->socket(); }
  void expires_after(std::chrono::milliseconds time) { plain_->expires_after(time); }
  void expires_never() { plain_->expires_never(); }
  bool is_encrypted() const { return tls_ != nullptr; }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    read(SomeBuffers<asio::mutable_buffer>(buffers), Completion(std::forward<Handler>(handler)));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    write(SomeBuffers<asio::const_buffer>(buffers), Completion(std::forward<Handler>(handler)));
  }

  // Before the first byte of HTTP; at once without TLS.
  void handshake(std::function<void(beast::error_code)> done);
  // Says that nothing follows: the other side can tell the end from a cut. No write may be under
  // way.
  void end_writing(std::function<void()> done);

 private:
  struct Tls;
  void read(const SomeBuffers<asio::mutable_buffer>& buffers, Completion done);
  void write(const SomeBuffers<asio::const_buffer>& buffers, Completion done);

  std::unique_ptr<Plain> plain_;  // where TLS refers to it
  std::unique_ptr<Tls> tls_;      // nullptr: none
};

// How a WebSocket ends: its own farewell is the end of what is sent, so TLS says none.
inline void teardown(beast::role_type role, ServerStream& stream, beast::error_code& failure) {
  using beast::websocket::teardown;
  teardown(role, stream.next_layer(), failure);
}
template <class Handler>
void async_teardown(beast::role_type role, ServerStream& stream, Handler&& handler) {
  using beast::websocket::async_teardown;
  async_teardown(role, stream.next_layer(), std::forward<Handler>(handler));
}

}  // namespace heddle::engine
