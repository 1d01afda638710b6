#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/serve/frame_stream.h"
#include "engine/serve/http_server_parts.h"

namespace heddle::engine {
namespace {

namespace websocket = beast::websocket;

// Its calls but those of WebSocket and WritePacer come one at a time, in the connection's strand.
class Socket : public WebSocket,
               public FrameWriter,
               public WritePacer::Writer,
               public OpenSockets::Member,
               public std::enable_shared_from_this<Socket> {
 public:
  Socket(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count, ServerStream stream)
      : server_(server),
        count_(std::move(count)),
        place_(server.sockets),
        stream_(std::move(stream), server.options.limits),
        idle_timer_(stream_.get_executor()) {}

  void start(http::request<http::string_body> request, HttpRequest head) {
    const ServerLimits& limits = server_.options.limits;
    server_.open_sockets.add(weak_from_this());
    frames().begin(weak_from_this());
    frames().next_layer().expires_never();
    websocket::stream_base::timeout times;
    times.handshake_timeout = std::chrono::milliseconds(limits.header_ms);
    times.idle_timeout = websocket::stream_base::none();  // it would count what is read alone
    times.keep_alive_pings = false;
    stream_.set_option(times);
    websocket::permessage_deflate deflate;
    deflate.server_enable = true;
    deflate.server_no_context_takeover = true;  // a message is deflated once for all clients
    deflate.server_max_window_bits = deflate.client_max_window_bits = SocketMessage::kWindowBits;
    stream_.set_option(deflate);
    stream_.set_option(
        websocket::stream_base::decorator([this](websocket::response_type& response) {
          const auto extensions = response[http::field::sec_websocket_extensions];
          frames().set_deflating(takes_deflated({extensions.data(), extensions.size()}));
        }));
    stream_.read_message_max(limits.socket_message_bytes);
    request_ = std::move(request);
    head_ = std::move(head);
    stream_.async_accept(request_, [self = shared_from_this()](beast::error_code failure) {
      self->accepted(failure);
    });
  }

  void send_text(Message text) override { send(std::move(text), true, false); }
  void send_binary(Message bytes, bool may_drop) override {
    send(std::move(bytes), false, may_drop);
  }
  void close() override {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->cut_off(); });
  }
  void finish() override {
    frames().backlog().end();
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      self->is_last_ = true;
      self->frames().write();
    });
  }

  void write_soon() override {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->frames().write(); });
  }
  void write_now() override {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->frames().write(); });
  }
  void all_is_written() override {
    if (is_last_ && is_open_) start_close_handshake();
  }
  // Beast waits for the other side to hang up, however long that takes.
  void farewell_begins() override {
    is_open_ = false;
    idle_timer_.expires_after(std::chrono::milliseconds(server_.options.limits.header_ms));
    idle_timer_.async_wait([weak = weak_from_this()](beast::error_code failure) {
      const std::shared_ptr<Socket> self = weak.lock();
      if (!failure && self) self->cut_off();
    });
  }
  void writing_failed() override { cut_off(); }
  void let_go() override { frames().let_go(); }

 private:
  FrameStream& frames() { return stream_.next_layer(); }

  void accepted(beast::error_code failure) {
    request_ = {};
    if (failure) return;
    is_open_ = true;
    try {
      events_ = server_.handlers.connect(head_, shared_from_this());
    } catch (const std::exception& error) {
      log(Level::error, cat("a WebSocket is refused: ", error.what()));
    }
    head_ = {};
    if (!events_) return cut_off();
    wait_for_signs();
    read();
  }

  // Of life. The timer does not keep the connection.
  void wait_for_signs() {
    idle_timer_.expires_after(
        std::chrono::milliseconds(std::max(1u, server_.options.limits.socket_idle_ms / 2)));
    idle_timer_.async_wait([weak = weak_from_this()](beast::error_code failure) {
      const std::shared_ptr<Socket> self = weak.lock();
      if (!failure && self && self->is_open_) self->look_for_signs();
    });
  }
  void look_for_signs() {
    if (frames().watch().ask() == IdleWatch::Verdict::gone) return cut_off();
    if (!std::exchange(is_pinging_, true))
      stream_.async_ping({}, [weak = weak_from_this()](beast::error_code) {
        // Of what goes wrong the read that waits hears.
        if (const std::shared_ptr<Socket> self = weak.lock()) self->is_pinging_ = false;
      });
    wait_for_signs();
  }

  void read() {
    stream_.async_read(incoming_,
                       [self = shared_from_this()](beast::error_code failure, std::size_t) {
                         if (failure) return self->ended(failure);
                         const auto data = self->incoming_.cdata();
                         self->receive({static_cast<const char*>(data.data()), data.size()});
                         self->incoming_.consume(data.size());
                         self->read();
                       });
  }

  void receive(std::string_view message) {
    if (!events_->received || !frames().next_layer().socket().is_open()) return;
    try {
      events_->received(message, stream_.got_text());
    } catch (const std::exception& error) {
      log(Level::error, cat("a WebSocket ends: ", error.what()));
      cut_off();
    }
  }

  void send(Message message, bool is_text, bool may_drop) {
    switch (frames().backlog().push(std::move(message), is_text, may_drop)) {
      case SocketBacklog::Pushed::first:
        return server_.pacer.add(shared_from_this());
      case SocketBacklog::Pushed::too_much:
        return close();
      case SocketBacklog::Pushed::behind:
      case SocketBacklog::Pushed::left_out:
        return;
    }
  }

  // The answer of the other side ends the read that waits.
  void start_close_handshake() {
    is_open_ = false;
    is_closing_ = true;
    stream_.async_close(websocket::close_code::normal,
                        [self = shared_from_this()](beast::error_code) { self->cut_off(); });
  }

  // Without a farewell: the other side does not listen. The read that waits ends by this.
  void cut_off() {
    beast::error_code ignored;
    frames().backlog().end();
    frames().next_layer().socket().close(ignored);
    is_open_ = false;
  }

  void ended(beast::error_code failure) {
    // One that has only ended its own side might never read what is being written to it. One
    // that has answered our farewell needs no cut: start_close_handshake() ends it.
    if (!is_closing_ || failure != websocket::error::closed) cut_off();
    if (events_ && events_->closed) events_->closed();
    events_.reset();
  }

  HttpServer::Data& server_;
  const std::shared_ptr<ConnectionCount> count_;
  const WritePacer::Place place_;
  websocket::stream<FrameStream> stream_;
  http::request<http::string_body> request_;
  HttpRequest head_;
  std::optional<WebSocketEvents> events_;
  beast::flat_buffer incoming_;
  asio::steady_timer idle_timer_;
  bool is_open_ = false, is_last_ = false, is_closing_ = false, is_pinging_ = false;
};

}  // namespace

void start_web_socket(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count,
                      ServerStream stream, http::request<http::string_body> request,
                      HttpRequest head) {
  std::make_shared<Socket>(server, std::move(count), std::move(stream))
      ->start(std::move(request), std::move(head));
}

}  // namespace heddle::engine
