#include "engine/serve/server_stream.h"

#ifdef HEDDLE_WITH_OPENSSL
#include <boost/beast/ssl/ssl_stream.hpp>
#endif

namespace heddle::engine {

#ifdef HEDDLE_WITH_OPENSSL
struct ServerStream::Tls {
  Tls(Plain& plain, asio::ssl::context& context) : stream(plain, context) {}
  beast::ssl_stream<Plain&> stream;
};

ServerStream::ServerStream(Socket socket, asio::ssl::context& tls)
    : ServerStream(std::move(socket)) {
  tls_ = std::make_unique<Tls>(*plain_, tls);
}
#else
struct ServerStream::Tls {};
#endif

ServerStream::ServerStream(Socket socket) : plain_(std::make_unique<Plain>(std::move(socket))) {}
ServerStream::ServerStream(ServerStream&&) noexcept = default;
ServerStream& ServerStream::operator=(ServerStream&&) noexcept = default;
ServerStream::~ServerStream() = default;

void ServerStream::read(const SomeBuffers<asio::mutable_buffer>& buffers, Completion done) {
#ifdef HEDDLE_WITH_OPENSSL
  if (tls_ != nullptr) return tls_->stream.async_read_some(buffers, std::move(done));
#endif
  plain_->async_read_some(buffers, std::move(done));
}

void ServerStream::write(const SomeBuffers<asio::const_buffer>& buffers, Completion done) {
#ifdef HEDDLE_WITH_OPENSSL
  if (tls_ != nullptr) return tls_->stream.async_write_some(buffers, std::move(done));
#endif
  plain_->async_write_some(buffers, std::move(done));
}

void ServerStream::handshake(std::function<void(beast::error_code)> done) {
#ifdef HEDDLE_WITH_OPENSSL
  if (tls_ != nullptr)
    return tls_->stream.async_handshake(asio::ssl::stream_base::server, std::move(done));
#endif
  done(beast::error_code());
}

void ServerStream::end_writing(std::function<void()> done) {
  const auto shut = [this, done = std::move(done)](beast::error_code) {
    beast::error_code ignored;
    socket().shutdown(asio::socket_base::shutdown_send, ignored);
    done();
  };
#ifdef HEDDLE_WITH_OPENSSL
  if (tls_ != nullptr) return tls_->stream.async_shutdown(shut);
#endif
  shut(beast::error_code());
}

}  // namespace heddle::engine
