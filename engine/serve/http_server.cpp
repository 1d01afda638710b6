#include "engine/serve/http_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <cerrno>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/serve/http_server_parts.h"

namespace heddle::engine {
namespace {

using local = asio::local::stream_protocol;

tcp::acceptor listen_at(asio::io_context& io, const std::string& address, std::uint16_t port) {
  beast::error_code failure;
  const auto parsed = asio::ip::make_address(address, failure);
  if (failure)
    throw Error(Code::invalid_argument, cat(quote(address),
                                            " is no address to listen at. Give an "
                                            "IPv4 or IPv6 address: 127.0.0.1"));
  tcp::acceptor acceptor(io);
  const tcp::endpoint endpoint(parsed, port);
  acceptor.open(endpoint.protocol(), failure);
  if (!failure) acceptor.set_option(asio::socket_base::reuse_address(true), failure);
  if (!failure && parsed.is_v6()) acceptor.set_option(asio::ip::v6_only(true), failure);
  if (!failure) acceptor.bind(endpoint, failure);
  if (!failure) acceptor.listen(asio::socket_base::max_listen_connections, failure);
  if (failure)
    throw Error(Code::io,
                cat("cannot listen at ", address, ", port ", port, ": ", failure.message(),
                    ". Another program may use the port: name another one with --port"));
  return acceptor;
}

// Nobody can connect before it listens, so its permissions are right from the first connection on.
local::acceptor listen_at_path(asio::io_context& io, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::io, cat("cannot listen at unix:", path, ": ", why));
  };
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    refuse(cat("a path has ", sizeof(sockaddr_un::sun_path) - 1, " bytes at most"));
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) refuse("there is something else of this name");
    beast::error_code failure;
    local::socket(io).connect(local::endpoint(path), failure);
    if (!failure) refuse("another program listens there");
    ::unlink(path.c_str());  // of one that was killed
  }
  beast::error_code failure;
  local::acceptor acceptor(io);
  acceptor.open(local(), failure);
  if (!failure) acceptor.bind(local::endpoint(path), failure);
  if (!failure && ::chmod(path.c_str(), 0600) != 0)
    failure.assign(errno, boost::system::system_category());
  if (!failure) acceptor.listen(asio::socket_base::max_listen_connections, failure);
  if (failure) refuse(failure.message());
  return acceptor;
}

#ifdef HEDDLE_WITH_OPENSSL
std::optional<asio::ssl::context> tls_context(const TlsFiles& files) {
  if (files.certificate.empty()) return {};
  asio::ssl::context context(asio::ssl::context::tls_server);
  ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  beast::error_code failure;
  context.use_certificate_chain_file(files.certificate.string(), failure);
  if (failure)
    throw Error(Code::invalid_argument,
                cat("--tls-cert: ", files.certificate.string(), ": ", failure.message(),
                    ". A certificate in PEM is expected, with those that lead to its root."));
  context.use_private_key_file(files.key.string(), asio::ssl::context::pem, failure);
  if (failure)
    throw Error(Code::invalid_argument,
                cat("--tls-key: ", files.key.string(), ": ", failure.message(),
                    ". The private key of --tls-cert is expected, in PEM and without a password."));
  return context;
}
#else
void require_no_tls(const TlsFiles& files) {
  if (!files.certificate.empty())
    throw Error(Code::unsupported,
                "--tls-cert: this heddle was built without OpenSSL. Install libssl-dev and build "
                "again, or put a proxy before it.");
}
#endif

// Its socket is made for a program that was refused; nobody waits for an answer that is not there.
template <class Socket>
void refuse_connection(Socket& socket, bool is_encrypted) {
  static constexpr std::string_view kBusy =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
      "Content-Length: 0\r\n\r\n";
  beast::error_code ignored;
  socket.non_blocking(true, ignored);
  if (!is_encrypted) socket.write_some(asio::buffer(kBusy), ignored);
  socket.shutdown(asio::socket_base::shutdown_send, ignored);
}

// What a connection throws, as where no memory is left, ends that connection alone.
void run_all(asio::io_context& io) {
  while (true) {
    try {
      io.run();
      return;
    } catch (const std::exception& error) {
      log(Level::error, cat("a connection ends: ", error.what()));
    }
  }
}

std::string peer_of(const tcp::socket& socket) {
  beast::error_code failure;
  const auto end = socket.remote_endpoint(failure);
  return failure ? "" : end.address().to_string();
}
std::string peer_of(const local::socket&) { return "unix"; }

}  // namespace

ServerStream HttpServer::Data::stream_of(tcp::socket socket) {
  beast::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
#ifdef HEDDLE_WITH_OPENSSL
  if (tls) return {ServerStream::Socket(std::move(socket)), *tls};
#endif
  return ServerStream(ServerStream::Socket(std::move(socket)));
}

ServerStream HttpServer::Data::stream_of(local::socket socket) {
  return ServerStream(ServerStream::Socket(std::move(socket)));
}

void OpenSockets::add(std::weak_ptr<Member> socket) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sockets_, [](const std::weak_ptr<Member>& each) { return each.expired(); });
  sockets_.push_back(std::move(socket));
}

void OpenSockets::let_go() {
  std::vector<std::weak_ptr<Member>> sockets;
  {
    const std::lock_guard lock(mutex_);
    sockets.swap(sockets_);
  }
  for (const std::weak_ptr<Member>& each : sockets)
    if (const std::shared_ptr<Member> socket = each.lock()) socket->let_go();
}

HttpServer::Data::Data(ServerOptions given, ServerHandlers to_call)
    : options(std::move(given)),
      handlers(std::move(to_call)),
      pool(std::max(1u, options.answering_threads)),
      patient_pool(std::max(1u, options.patient_threads)) {
#ifdef HEDDLE_WITH_OPENSSL
  tls = tls_context(options.tls);
#else
  require_no_tls(options.tls);
#endif
  for (const std::string& address : options.addresses) {
    if (const std::string path = unix_path(address); !path.empty()) {
      local_acceptors.push_back(listen_at_path(io, path));
      continue;
    }
    acceptors.push_back(listen_at(io, address, options.port));
    if (options.port == 0) options.port = acceptors.back().local_endpoint().port();
  }
}

template <class Acceptor>
void HttpServer::Data::accept(Acceptor& acceptor) {
  using Socket = typename Acceptor::protocol_type::socket;
  acceptor.async_accept(asio::make_strand(io), [&](beast::error_code failure, Socket socket) {
    if (failure == asio::error::operation_aborted || is_stopping) return;
    try {
      if (!failure && connections < options.limits.connections) {
        std::string peer = peer_of(socket);
        start_connection(*this, stream_of(std::move(socket)), std::move(peer));
      } else if (!failure) {
        refuse_connection(socket, !options.tls.certificate.empty());
      }
    } catch (const std::exception& error) {  // the next one is accepted all the same
      log(Level::error, cat("a connection ends: ", error.what()));
    }
    if (!failure) return accept(acceptor);
    // Without file numbers to give, trying again at once would take a whole processor.
    auto pause = std::make_shared<asio::steady_timer>(io, std::chrono::milliseconds(100));
    pause->async_wait([this, &acceptor, pause](beast::error_code) { accept(acceptor); });
  });
}

HttpServer::HttpServer(ServerOptions options, ServerHandlers handlers)
    : data_(std::make_unique<Data>(std::move(options), std::move(handlers))) {
  for (tcp::acceptor& acceptor : data_->acceptors) data_->accept(acceptor);
  for (local::acceptor& acceptor : data_->local_acceptors) data_->accept(acceptor);
  for (int i = 0; i < 2; ++i)
    data_->threads.push_back(
        start_thread("a thread of the server", [data = data_.get()] { run_all(data->io); }));
}

HttpServer::~HttpServer() { stop(); }

void HttpServer::stop() {
  if (data_->is_stopping.exchange(true)) return;
  data_->pool.join();  // of what is being answered
  data_->patient_pool.join();
  data_->io.stop();
  data_->threads.clear();
  data_->open_sockets.let_go();
  for (const std::string& address : data_->options.addresses)
    if (const std::string path = unix_path(address); !path.empty()) ::unlink(path.c_str());
}

std::string unix_path(const std::string& address) {
  constexpr std::string_view kBegin = "unix:";
  return address.starts_with(kBegin) ? address.substr(kBegin.size()) : "";
}

std::uint16_t HttpServer::port() const { return data_->options.port; }

std::vector<std::string> HttpServer::urls() const {
  std::vector<std::string> urls;
  for (const std::string& address : data_->options.addresses) {
    if (!unix_path(address).empty()) {
      urls.push_back(address);
      continue;
    }
    const bool is_v6 = address.find(':') != std::string::npos;
    const char* scheme = data_->options.tls.certificate.empty() ? "http" : "https";
    urls.push_back(cat(scheme, "://", is_v6 ? "[" : "", address, is_v6 ? "]" : "", ":", port()));
  }
  return urls;
}

std::size_t HttpServer::connections() const { return data_->connections; }

}  // namespace heddle::engine
