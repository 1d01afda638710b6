// One connection of the server: requests are read, limited and timed, answers written.
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/serve/http_server_parts.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kPiece = 64 << 10;  // bytes of a file that are read at once

std::chrono::milliseconds time_for(unsigned base_ms, std::uint64_t bytes, unsigned per_second) {
  return std::chrono::milliseconds(base_ms + bytes * 1000 / per_second);
}

HttpRequest head_of(const http::request<http::string_body>& message, const std::string& peer) {
  HttpRequest head;
  head.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const std::size_t question = target.find('?');
  head.path = target.substr(0, question);
  if (question != target.npos) head.query = target.substr(question + 1);
  for (const auto& field : message)
    head.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  head.peer = peer;
  return head;
}

// One connection, from one request to the next. Its calls come one at a time.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(HttpServer::Data& server, ServerStream stream, std::string peer)
      : server_(server),
        limits_(server.options.limits),
        count_(std::make_shared<ConnectionCount>(server)),
        stream_(std::move(stream)),
        peer_(std::move(peer)) {}
  ~Connection() { release_body(); }

  void start() {
    stream_.expires_after(std::chrono::milliseconds(limits_.header_ms));
    stream_.handshake([self = shared_from_this()](beast::error_code failure) {
      if (failure) return self->hang_up();
      self->wait_for_request();
    });
  }

 private:
  // Waits for the first byte, which may take its time, and then for the rest of the header.
  void wait_for_request() {
    parser_.emplace();
    parser_->header_limit(limits_.header_bytes);
    parser_->body_limit(limits_.body_bytes);
    if (buffer_.size() > 0) return read_header();
    stream_.expires_after(std::chrono::milliseconds(limits_.idle_ms));
    stream_.async_read_some(
        buffer_.prepare(4096),
        [self = shared_from_this()](beast::error_code failure, std::size_t bytes) {
          if (failure) return self->hang_up();
          self->buffer_.commit(bytes);
          self->read_header();
        });
  }

  void read_header() {
    stream_.expires_after(std::chrono::milliseconds(limits_.header_ms));
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](beast::error_code failure, std::size_t) {
                              if (failure) return self->refuse(failure);
                              self->on_header();
                            });
  }

  void on_header() {
    request_ = head_of(parser_->get(), peer_);
    request_.is_encrypted = stream_.is_encrypted();
    request_.claim = [this](std::uint64_t more) { return claim_more(more); };
    // What has several meanings is how requests are smuggled past a proxy.
    if (parser_->chunked() && request_.header("Content-Length") != nullptr)
      return write_and_close(text_response("the length of the body is given twice\n", 400));
    if (std::optional<HttpResponse> refusal = check()) return write_and_close(*std::move(refusal));
    if (beast::websocket::is_upgrade(parser_->get())) {
      buffer_.consume(buffer_.size());
      return start_web_socket(server_, count_, std::move(stream_), parser_->release(),
                              std::move(request_));
    }
    const auto length = parser_->content_length();
    const std::uint64_t bytes = length               ? *length
                                : parser_->chunked() ? limits_.body_bytes
                                                     : std::uint64_t{0};
    if (bytes > limits_.body_bytes) return refuse(http::error::body_limit);
    if (!claim_body(bytes))
      return write_and_close(
          text_response("too much is being sent at once\n", 503).set("Retry-After", "5"));
    stream_.expires_after(time_for(limits_.body_ms, bytes, limits_.body_bytes_per_second));
    if (const std::string* expect = request_.header("Expect");
        expect != nullptr && beast::iequals(*expect, "100-continue"))
      return go_on_with_body();
    read_body();
  }

  bool claim_body(std::uint64_t bytes) {
    claimed_ = bytes;
    if ((server_.body_bytes += bytes) <= limits_.all_body_bytes) return true;
    release_body();
    return false;
  }
  // Of what becomes larger than it was sent; while it is answered.
  bool claim_more(std::uint64_t bytes) {
    claimed_ += bytes;
    return (server_.body_bytes += bytes) <= limits_.all_body_bytes;
  }
  void release_body() { server_.body_bytes -= std::exchange(claimed_, 0); }

  void go_on_with_body() {
    static const std::string kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = shared_from_this()](beast::error_code failure, std::size_t) {
                        if (failure) return self->hang_up();
                        self->read_body();
                      });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code failure, std::size_t) {
                       if (failure) return self->refuse(failure);
                       self->answer();
                     });
  }

  void answer() {
    keeps_alive_ = parser_->get().keep_alive();
    request_.body = std::move(parser_->get().body());
    parser_.reset();
    stream_.expires_never();
    const bool takes_long = server_.handlers.takes_long && server_.handlers.takes_long(request_);
    asio::post(takes_long ? server_.patient_pool : server_.pool, [self = shared_from_this()] {
      auto response = std::make_shared<HttpResponse>(self->make_answer());
      asio::post(self->stream_.get_executor(),
                 [self, response] { self->write(std::move(*response)); });
    });
  }

  HttpResponse make_answer() {
    try {
      return server_.handlers.answer(request_);
    } catch (const std::exception& error) {
      return failed(error);
    }
  }
  std::optional<HttpResponse> check() {
    try {
      return server_.handlers.check(request_);
    } catch (const std::exception& error) {
      return failed(error);
    }
  }
  HttpResponse failed(const std::exception& error) const {
    log(Level::error, cat(request_.method, " ", printable(request_.path), ": ", error.what()));
    return text_response("500: Internal Server Error\n", 500);
  }

  // Of what could not be read.
  void refuse(beast::error_code failure) {
    if (failure == http::error::header_limit)
      return write_and_close(text_response("431: the header is too large\n", 431));
    if (failure == http::error::body_limit)
      return write_and_close(text_response(
          cat("413: the body is too large; ", limits_.body_bytes, " bytes are allowed\n"), 413));
    if (failure == beast::error::timeout || failure == http::error::end_of_stream ||
        failure == http::error::partial_message ||
        failure.category() != make_error_code(http::error::bad_method).category())
      return hang_up();
    write_and_close(text_response("400: this is no HTTP request\n", 400));
  }

  void write_and_close(HttpResponse response) {
    keeps_alive_ = false;
    if (request_.method.empty()) request_.method = "GET";
    write(std::move(response));
  }

  void write(HttpResponse response) {
    // Before the answer is there: who has it may send the next body at once.
    std::string().swap(request_.body);
    release_body();
    if (response.stream && request_.method != "HEAD")
      return start_stream(server_, count_, std::move(stream_), std::move(response));
    const std::uint64_t bytes = response.file ? response.file->bytes : response.body.size();
    message_.emplace();
    message_->version(11);
    message_->result(response.status);
    for (const auto& [name, value] : response.headers) message_->insert(name, value);
    const bool has_body =
        response.status >= 200 && response.status != 204 && response.status != 304;
    if (has_body) message_->content_length(bytes);
    message_->keep_alive(keeps_alive_);
    const bool sends_body = has_body && request_.method != "HEAD";
    if (!sends_body) response.file.reset();
    message_->body() = sends_body && !response.file ? std::move(response.body) : "";
    part_ = response.file.value_or(FileSlice{});
    stream_.expires_after(time_for(limits_.write_ms, bytes, limits_.write_bytes_per_second));
    serializer_.emplace(*message_);
    serializer_->split(part_.bytes > 0);
    const auto next = [self = shared_from_this()](beast::error_code failure, std::size_t) {
      if (failure) return self->hang_up();
      self->write_piece();
    };
    if (part_.bytes > 0 || !sends_body)
      http::async_write_header(stream_, *serializer_, next);
    else
      http::async_write(stream_, *serializer_, next);
  }

  void write_piece() {
    if (part_.bytes == 0) return finish();
    piece_.resize(std::min<std::uint64_t>(kPiece, part_.bytes));
    const ssize_t got =
        ::pread(part_.file->number(), piece_.data(), piece_.size(), off_t(part_.offset));
    if (got <= 0)
      return hang_up();  // shorter than it was: the other side sees that it is not whole
    part_.offset += std::uint64_t(got);
    part_.bytes -= std::uint64_t(got);
    asio::async_write(stream_, asio::buffer(piece_.data(), std::size_t(got)),
                      [self = shared_from_this()](beast::error_code failure, std::size_t) {
                        if (failure) return self->hang_up();
                        self->write_piece();
                      });
  }

  void finish() {
    part_ = {};
    serializer_.reset();
    message_.reset();
    request_ = {};
    if (keeps_alive_ && !server_.is_stopping) return wait_for_request();
    drain();
  }

  // An answer to what was not read to its end would be lost if the socket were closed at once.
  void drain() {
    stream_.expires_after(std::chrono::milliseconds(std::min(2000u, limits_.idle_ms)));
    stream_.end_writing([self = shared_from_this()] { self->read_away(); });
  }
  void read_away() {
    piece_.resize(kPiece);
    stream_.next_layer().async_read_some(
        asio::buffer(piece_.data(), piece_.size()),
        [self = shared_from_this()](beast::error_code failure, std::size_t) {
          if (failure) return self->hang_up();
          self->read_away();
        });
  }

  void hang_up() {
    beast::error_code ignored;
    stream_.socket().close(ignored);
  }

  HttpServer::Data& server_;
  const ServerLimits& limits_;
  const std::shared_ptr<ConnectionCount> count_;
  ServerStream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;
  std::optional<http::response<http::string_body>> message_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  FileSlice part_;
  const std::string peer_;
  std::string piece_;
  std::uint64_t claimed_ = 0;
  bool keeps_alive_ = false;
};

}  // namespace

void start_connection(HttpServer::Data& server, ServerStream stream, std::string peer) {
  std::make_shared<Connection>(server, std::move(stream), std::move(peer))->start();
}

}  // namespace heddle::engine
