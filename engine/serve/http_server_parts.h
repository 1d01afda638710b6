// What the parts of the server share. Heavy: for http_server.cpp, http_connection.cpp,
// http_stream.cpp and web_socket.cpp alone.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/serve/http_server.h"
#include "engine/serve/server_stream.h"
#include "engine/serve/write_pacer.h"

namespace heddle::engine {

namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

// The WebSockets there are, for the end of the server. While a frame of Boost.Beast's waits in one,
// the frame's handler holds the WebSocket that holds the frame, and neither would ever go.
class OpenSockets {
 public:
  class Member {
   public:
    virtual ~Member() = default;
    virtual void let_go() = 0;  // of what waits to be written
  };
  void add(std::weak_ptr<Member> socket);  // any thread
  void let_go();                           // of them all; no thread of the context runs any more

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Member>> sockets_;  // mutex_
};

struct HttpServer::Data {
  ServerOptions options;
  ServerHandlers handlers;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::uint64_t> body_bytes = 0;  // of requests that are being read or answered
  std::atomic<bool> is_stopping = false;
  std::atomic<std::size_t> sockets = 0;
  OpenSockets open_sockets;
  asio::io_context io{2};  // goes before what its connections count in
  WritePacer pacer{io, sockets};
  asio::thread_pool pool, patient_pool;
  std::vector<tcp::acceptor> acceptors;
  std::vector<asio::local::stream_protocol::acceptor> local_acceptors;
  std::vector<std::jthread> threads;
#ifdef HEDDLE_WITH_OPENSSL
  std::optional<asio::ssl::context> tls;  // nothing: none; never over Unix sockets
#endif

  Data(ServerOptions options, ServerHandlers handlers);
  template <class Acceptor>
  void accept(Acceptor& acceptor);
  ServerStream stream_of(tcp::socket socket);
  ServerStream stream_of(asio::local::stream_protocol::socket socket);
};

// Takes over what has come in. `peer`: its address; of a Unix socket "unix".
void start_connection(HttpServer::Data& server, ServerStream stream, std::string peer);

// Counts a connection for as long as it lives.
class ConnectionCount {
 public:
  explicit ConnectionCount(HttpServer::Data& server) : server_(server) { ++server_.connections; }
  ~ConnectionCount() { --server_.connections; }
  ConnectionCount(const ConnectionCount&) = delete;

 private:
  HttpServer::Data& server_;
};

// Goes on as a WebSocket with a connection whose request for one has been read. `head`: the same
// request, for handlers.
void start_web_socket(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count,
                      ServerStream stream, http::request<http::string_body> request,
                      HttpRequest head);

// Goes on with a connection whose answer is streamed.
void start_stream(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count,
                  ServerStream stream, HttpResponse response);

}  // namespace heddle::engine
