#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/write.hpp>
#include <deque>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/serve/http_server_parts.h"

namespace heddle::engine {
namespace {

// Without a length and without chunks: the body ends with the connection.
class Stream : public HttpStream, public std::enable_shared_from_this<Stream> {
 public:
  Stream(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count, ServerStream stream)
      : server_(server),
        count_(std::move(count)),
        stream_(std::move(stream)),
        silence_(stream_.get_executor()),
        deadline_(stream_.get_executor()) {}

  void start(HttpResponse response) {
    body_ = std::move(response.stream).value();
    header_.version(11);
    header_.result(response.status);
    for (const auto& [name, value] : response.headers) header_.insert(name, value);
    header_.keep_alive(false);
    serializer_.emplace(header_);
    stream_.expires_after(write_time());
    http::async_write_header(stream_, *serializer_,
                             [self = shared_from_this()](beast::error_code failure, std::size_t) {
                               if (failure) return self->cut_off();
                               self->begin();
                             });
  }

  bool send(std::string piece) override {
    if (is_over_) return false;
    asio::post(stream_.get_executor(),
               [self = shared_from_this(), piece = std::move(piece)]() mutable {
                 self->enqueue(std::move(piece));
               });
    return true;
  }
  bool is_read() const override { return !is_over_; }
  void close() override {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      self->is_last_ = true;
      self->write_next();
    });
  }

 private:
  std::chrono::milliseconds write_time() const {
    return std::chrono::milliseconds(server_.options.limits.write_ms);
  }

  void begin() {
    stream_.expires_never();
    watch();
    wait_for_silence();
    asio::post(server_.pool, [self = shared_from_this()] {
      try {
        self->body_.begin(self);
      } catch (const std::exception& error) {
        log(Level::error, cat("a streamed answer: ", error.what()));
        self->close();
      }
    });
  }

  // Whoever reads says nothing any more: what comes here is the end.
  void watch() {
    stream_.async_read_some(asio::buffer(&incoming_, 1),
                            [self = shared_from_this()](beast::error_code failure, std::size_t) {
                              if (failure) return self->cut_off();
                              self->watch();
                            });
  }

  void wait_for_silence() {
    silence_.expires_after(std::chrono::milliseconds(server_.options.limits.stream_idle_ms));
    silence_.async_wait([self = shared_from_this()](beast::error_code failure) {
      if (self->is_over_ || self->is_last_) return;
      if (!failure && self->is_silent_ && !self->body_.heartbeat.empty())
        self->enqueue(self->body_.heartbeat);
      self->is_silent_ = true;
      self->wait_for_silence();
    });
  }

  void enqueue(std::string piece) {
    if (is_over_ || is_last_) return;
    is_silent_ = false;
    waiting_bytes_ += piece.size();
    waiting_.push_back(std::move(piece));
    if (waiting_bytes_ > server_.options.limits.stream_backlog_bytes) {
      // What is being written stays whole.
      waiting_.erase(waiting_.begin() + (is_writing_ ? 1 : 0), waiting_.end());
      waiting_.push_back(body_.farewell);
      is_last_ = true;
    }
    write_next();
  }

  void write_next() {
    if (is_writing_ || is_over_) return;
    if (waiting_.empty()) {
      if (is_last_) finish();
      return;
    }
    is_writing_ = true;
    set_deadline();
    asio::async_write(stream_, asio::buffer(waiting_.front()),
                      [self = shared_from_this()](beast::error_code failure, std::size_t) {
                        self->is_writing_ = false;
                        if (failure) return self->cut_off();
                        self->waiting_bytes_ -=
                            std::min(self->waiting_bytes_, self->waiting_.front().size());
                        self->waiting_.pop_front();
                        self->deadline_.expires_at(asio::steady_timer::time_point::max());
                        self->write_next();
                      });
  }

  // For one piece; the stream's own would be of the read that waits, too.
  void set_deadline() {
    deadline_.expires_after(write_time());
    deadline_.async_wait([self = shared_from_this()](beast::error_code failure) {
      const bool is_late = asio::steady_timer::clock_type::now() >= self->deadline_.expiry();
      if (!failure && is_late) self->cut_off();
    });
  }

  void finish() {
    is_over_ = true;
    set_deadline();  // the other side has so long to hang up
    silence_.cancel();
    stream_.end_writing([self = shared_from_this()] {});
  }

  void cut_off() {
    const bool was_over = is_over_.exchange(true);
    if (!was_over && !is_last_ && body_.gone && !server_.is_stopping)
      asio::post(server_.pool, [gone = std::move(body_.gone)] {
        try {
          gone();
        } catch (const std::exception& error) {
          log(Level::error, cat("a reader has gone: ", error.what()));
        }
      });
    silence_.cancel();
    deadline_.cancel();
    beast::error_code ignored;
    stream_.socket().close(ignored);
  }

  HttpServer::Data& server_;
  const std::shared_ptr<ConnectionCount> count_;
  ServerStream stream_;
  asio::steady_timer silence_, deadline_;
  http::response<http::empty_body> header_;
  std::optional<http::response_serializer<http::empty_body>> serializer_;
  StreamedBody body_;
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  char incoming_ = 0;
  bool is_writing_ = false, is_last_ = false, is_silent_ = true;
  std::atomic<bool> is_over_ = false;
};

}  // namespace

void start_stream(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count,
                  ServerStream stream, HttpResponse response) {
  std::make_shared<Stream>(server, std::move(count), std::move(stream))->start(std::move(response));
}

}  // namespace heddle::engine
