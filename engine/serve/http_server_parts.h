// What the parts of the server share. Heavy: for http_server.cpp, http_stream.cpp and
// web_socket.cpp alone.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <thread>
#include <vector>

#include "engine/serve/http_server.h"

namespace heddle::engine {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

struct HttpServer::Data {
  ServerOptions options;
  ServerHandlers handlers;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::uint64_t> body_bytes = 0;  // of requests that are being read or answered
  std::atomic<bool> is_stopping = false;
  asio::io_context io{2};  // goes before what its connections count in
  asio::thread_pool pool;
  std::vector<tcp::acceptor> acceptors;
  std::vector<std::jthread> threads;

  Data(ServerOptions options, ServerHandlers handlers);
  void accept(tcp::acceptor& acceptor);
};

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
                      beast::tcp_stream stream, http::request<http::string_body> request,
                      HttpRequest head);

// Goes on with a connection whose answer is streamed.
void start_stream(HttpServer::Data& server, std::shared_ptr<ConnectionCount> count,
                  beast::tcp_stream stream, HttpResponse response);

}  // namespace heddle::engine
