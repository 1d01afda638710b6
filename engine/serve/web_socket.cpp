#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <deque>

#include "engine/serve/http_server_parts.h"

namespace heddle::engine {
namespace {

namespace websocket = beast::websocket;

constexpr int kWindowBits = 12;                  // of deflate: 200 clients shall cost little memory
constexpr std::size_t kWorthCompressing = 1024;  // bytes of a text

class Socket : public WebSocket, public std::enable_shared_from_this<Socket> {
 public:
  Socket(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count, ServerStream stream)
      : server_(server), count_(std::move(count)), stream_(std::move(stream)) {}

  void start(http::request<http::string_body> request, HttpRequest head) {
    const ServerLimits& limits = server_.options.limits;
    stream_.next_layer().expires_never();
    websocket::stream_base::timeout times;
    times.handshake_timeout = std::chrono::milliseconds(limits.header_ms);
    times.idle_timeout = std::chrono::milliseconds(limits.socket_idle_ms);
    times.keep_alive_pings = true;
    stream_.set_option(times);
    websocket::permessage_deflate deflate;
    deflate.server_enable = true;
    deflate.server_max_window_bits = deflate.client_max_window_bits = kWindowBits;
    deflate.compLevel = 1;
    deflate.memLevel = 4;
    deflate.msg_size_threshold = kWorthCompressing;
    stream_.set_option(deflate);
    stream_.read_message_max(limits.socket_message_bytes);
    stream_.auto_fragment(false);  // clients take a message in one piece as well
    request_ = std::move(request);
    head_ = std::move(head);
    stream_.async_accept(request_, [self = shared_from_this()](beast::error_code failure) {
      self->accepted(failure);
    });
  }

  void send_text(Message text) override { send({std::move(text), true, false}); }
  void send_binary(Message bytes, bool may_drop) override {
    send({std::move(bytes), false, may_drop});
  }
  void close() override {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->cut_off(); });
  }
  void finish() override {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      self->is_last_ = true;
      self->write_next();
    });
  }

 private:
  struct Outgoing {
    Message message;
    bool is_text = true, may_drop = false;
  };

  void accepted(beast::error_code failure) {
    request_ = {};
    if (failure) return;
    is_open_ = true;
    events_ = server_.handlers.connect(head_, shared_from_this());
    head_ = {};
    if (!events_) return cut_off();
    write_next();
    read();
  }

  void read() {
    stream_.async_read(
        incoming_, [self = shared_from_this()](beast::error_code failure, std::size_t) {
          if (failure) return self->ended();
          const auto data = self->incoming_.cdata();
          const std::string_view text(static_cast<const char*>(data.data()), data.size());
          if (self->events_->received) self->events_->received(text, self->stream_.got_text());
          self->incoming_.consume(data.size());
          self->read();
        });
  }

  void send(Outgoing next) {
    asio::post(stream_.get_executor(),
               [self = shared_from_this(), next = std::move(next)]() mutable {
                 self->enqueue(std::move(next));
               });
  }

  void enqueue(Outgoing next) {
    if (is_over_ || is_last_) return;
    const ServerLimits& limits = server_.options.limits;
    if (next.may_drop && waiting_bytes_ > limits.socket_drop_bytes) return;
    if (waiting_bytes_ + next.message->size() > limits.socket_backlog_bytes) return cut_off();
    waiting_bytes_ += next.message->size();
    waiting_.push_back(std::move(next));
    write_next();
  }

  void write_next() {
    if (is_writing_ || !is_open_) return;
    if (waiting_.empty() && is_last_) return start_close_handshake();
    if (waiting_.empty()) return;
    is_writing_ = true;
    const Outgoing& next = waiting_.front();
    stream_.text(next.is_text);
    stream_.compress(next.is_text);
    stream_.async_write(asio::buffer(*next.message),
                        [self = shared_from_this()](beast::error_code failure, std::size_t) {
                          self->is_writing_ = false;
                          self->waiting_bytes_ -= self->waiting_.front().message->size();
                          self->waiting_.pop_front();
                          if (failure) return self->cut_off();
                          self->write_next();
                        });
  }

  // The answer of the other side ends the read that waits.
  void start_close_handshake() {
    is_open_ = false;
    stream_.async_close(websocket::close_code::normal,
                        [self = shared_from_this()](beast::error_code) { self->cut_off(); });
  }

  // Without a farewell: the other side does not listen. The read that waits ends by this.
  void cut_off() {
    beast::error_code ignored;
    beast::get_lowest_layer(stream_).socket().close(ignored);
    is_open_ = false;
  }

  void ended() {
    is_over_ = true;
    is_open_ = false;
    if (events_ && events_->closed) events_->closed();
    events_.reset();
  }

  HttpServer::Data& server_;
  const std::shared_ptr<ConnectionCount> count_;
  websocket::stream<ServerStream> stream_;
  http::request<http::string_body> request_;
  HttpRequest head_;
  std::optional<WebSocketEvents> events_;
  beast::flat_buffer incoming_;
  std::deque<Outgoing> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool is_writing_ = false, is_open_ = false, is_over_ = false, is_last_ = false;
};

}  // namespace

void start_web_socket(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count,
                      ServerStream stream, http::request<http::string_body> request,
                      HttpRequest head) {
  std::make_shared<Socket>(server, std::move(count), std::move(stream))
      ->start(std::move(request), std::move(head));
}

}  // namespace heddle::engine
