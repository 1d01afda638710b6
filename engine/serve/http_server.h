// An HTTP/1.1 and WebSocket server: sockets, limits and times, no policy. Who may ask what is said
// by its handlers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/serve/http_message.h"
#include "engine/serve/socket_message.h"

namespace heddle::engine {

// Over 15 members: each a limit by itself, with a default.
struct ServerLimits {
  std::size_t connections = 2048;            // further ones get 503, and are closed at once
  std::uint32_t header_bytes = 64 << 10;     // else 431
  std::uint64_t body_bytes = 100 << 20;      // of a request; else 413
  std::uint64_t all_body_bytes = 1 << 30;    // of all requests that are being read; else 503
  unsigned body_bytes_per_second = 8 << 10;  // a slower client is cut off
  unsigned write_bytes_per_second = 8 << 10;
  // Milliseconds: for a whole header, for the base of a body or of an answer, between two requests.
  unsigned header_ms = 15'000, body_ms = 30'000, write_ms = 30'000, idle_ms = 75'000;
  std::size_t socket_message_bytes = 1 << 20;   // that a WebSocket client may send at once
  std::size_t socket_backlog_bytes = 32 << 20;  // that wait for a slow one; then it is cut off
  std::size_t socket_drop_bytes = 1 << 20;      // beyond, what may be dropped is
  unsigned socket_idle_ms = 60'000;             // silent ones are pinged after half of it
  std::size_t stream_backlog_bytes = 4 << 20;   // that wait for the reader of a streamed body
  unsigned stream_idle_ms = 15'000;             // between two signs of life on one
};

// PEM; both or none.
struct TlsFiles {
  std::filesystem::path certificate, key;
};

struct ServerOptions {
  // IPv4, IPv6, or "unix:/path" of a socket that is its user's alone.
  std::vector<std::string> addresses = {"127.0.0.1"};
  std::uint16_t port = 0;  // 0: the system chooses one
  unsigned answering_threads = 4;
  unsigned patient_threads = 4;  // of what takes long: further ones wait for each other alone
  TlsFiles tls = {};             // empty: none. Unix sockets have none
  ServerLimits limits = {};
};

// One WebSocket connection. Any thread; messages go out in the order of the calls, and where many
// are open up to 250 ms after them (WritePacer).
class WebSocket {
 public:
  using Message = std::shared_ptr<const SocketMessage>;
  virtual ~WebSocket() = default;
  virtual void send_text(Message text) = 0;
  // `may_drop`: when the other side is slow, it goes without.
  virtual void send_binary(Message bytes, bool may_drop) = 0;
  virtual void close() = 0;  // at once: what waits is lost
  // Once all that was sent before is written.
  virtual void finish() { close(); }
};

// Called on the server's threads, one call at a time for each connection. What received() throws
// ends the connection.
struct WebSocketEvents {
  std::function<void(std::string_view message, bool is_text)> received;
  std::function<void()> closed;  // once, the last of all calls; not when the server stops
};

struct ServerHandlers {
  // Before a body is read, of every request: says who asks, and an answer refuses it. Quick. What
  // it throws is answered by 500.
  std::function<std::optional<HttpResponse>(HttpRequest& head)> check;
  // On one of the answering threads. What it throws is answered by 500.
  std::function<HttpResponse(const HttpRequest&)> answer;
  // Whether the answer may take long: then it is made on a patient thread, so that nobody else
  // waits for it. Quick. Empty: none does.
  std::function<bool(const HttpRequest& head)> takes_long = {};
  // A WebSocket is open; nothing, or an exception: it is closed again. What is sent meanwhile goes
  // out first.
  std::function<std::optional<WebSocketEvents>(const HttpRequest& head,
                                               const std::shared_ptr<WebSocket>& socket)>
      connect;
};

// "/path" of "unix:/path"; "" of other addresses.
std::string unix_path(const std::string& address);

class HttpServer {
 public:
  // Listens from now on. Throws Error where an address cannot be used.
  HttpServer(ServerOptions options, ServerHandlers handlers);
  ~HttpServer();  // as stop(); every WebSocket goes before
  HttpServer(const HttpServer&) = delete;

  // Waits for the handlers that run; none is called any more. Connections end with the object.
  void stop();

  std::uint16_t port() const;
  std::vector<std::string> urls() const;  // "http://127.0.0.1:8188", "unix:/path"
  std::size_t connections() const;

  struct Data;

 private:
  std::unique_ptr<Data> data_;
};

}  // namespace heddle::engine
