// A client for tests of the server, over loopback and without a library: what it sends is what the
// test says, to the byte. One thread at a time.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"

namespace heddle::test {

struct Reply {
  int status = 0;                              // 0: the connection was closed without one
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;
  engine::Json json() const { return engine::parse_json(body, "reply"); }
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

class Connection {
 public:
  // receive_bytes: what the system keeps until it is read; 0: as it likes.
  explicit Connection(std::uint16_t port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0)
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("no connection to the server");
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;

  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the other side has heard enough
      text.remove_prefix(std::size_t(sent));
    }
  }
  // At least so many bytes are there; false: the connection has ended before.
  bool fill(std::size_t bytes) {
    while (buffer_.size() < bytes) {
      pollfd wait{socket_, POLLIN, 0};
      if (::poll(&wait, 1, 60'000) <= 0) throw std::runtime_error("the server is silent");
      char piece[16384];
      const ssize_t got = ::recv(socket_, piece, sizeof piece, 0);
      if (got <= 0) return false;
      buffer_.append(piece, std::size_t(got));
    }
    return true;
  }
  std::string take(std::size_t bytes) {
    std::string taken = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    return taken;
  }
  bool is_closed() { return !fill(buffer_.size() + 1); }
  int number() const { return socket_; }  // of its descriptor

  Reply read_reply(bool has_body = true) {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
      if (!fill(buffer_.size() + 1)) return {};
    const std::string head = take(end + 4);
    Reply reply;
    reply.status = std::stoi(head.substr(head.find(' ') + 1));
    for (std::size_t at = head.find("\r\n") + 2; at < end; at = head.find("\r\n", at) + 2) {
      const std::size_t colon = head.find(':', at), stop = head.find("\r\n", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
      reply.headers[name] = head.substr(colon + 2, stop - colon - 2);
    }
    if (has_body && reply.headers.contains("content-length")) {
      const std::size_t bytes = std::stoul(reply.headers.at("content-length"));
      fill(bytes);
      reply.body = take(bytes);
    }
    return reply;
  }

  Reply ask(const std::string& method, const std::string& target, const std::string& body = "",
            const std::string& headers = "Host: 127.0.0.1\r\n") {
    std::string text = method + " " + target + " HTTP/1.1\r\n" + headers;
    if (!body.empty() || method == "POST")
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    send(text + "\r\n" + body);
    return read_reply(method != "HEAD");
  }

 private:
  const int socket_;
  std::string buffer_;
};

inline Reply ask(std::uint16_t port, const std::string& method, const std::string& target,
                 const std::string& body = "", const std::string& headers = "Host: 127.0.0.1\r\n") {
  return Connection(port).ask(method, target, body, headers);
}

class SocketClient {
 public:
  struct Message {
    bool is_text = true, is_end = false;
    std::string content;
    bool is_deflated = false;                  // RSV1
    std::optional<std::string> farewell = {};  // of a close frame; nothing: cut off, or no end
  };

  SocketClient(std::uint16_t port, const std::string& target,
               const std::string& headers = "Host: 127.0.0.1\r\n")
      : connection_(port) {
    connection_.send("GET " + target + " HTTP/1.1\r\n" + headers +
                     "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    reply = connection_.read_reply();
  }

  // With one mask for all, which is no secret here.
  void send(std::string_view text, int opcode = 1, bool is_masked = true) {
    constexpr char kMask[4] = {1, 2, 3, 4};
    std::string frame{char(0x80 | opcode)};
    const char masked = is_masked ? char(0x80) : char(0);
    if (text.size() < 126) {
      frame += char(masked | char(text.size()));
    } else {
      const bool is_wide = text.size() >= 65536;
      frame += char(masked | char(is_wide ? 127 : 126));
      for (int shift = is_wide ? 56 : 8; shift >= 0; shift -= 8)
        frame += char(text.size() >> shift);
    }
    if (is_masked) frame.append(kMask, 4);
    for (std::size_t i = 0; i < text.size(); ++i)
      frame += is_masked ? char(text[i] ^ kMask[i % 4]) : text[i];
    connection_.send(frame);
  }

  // The next message, of all its pieces; pings are answered.
  Message read() {
    Message whole;
    while (true) {
      if (!connection_.fill(2)) return {true, true, ""};
      const std::string head = connection_.take(2);
      std::uint64_t size = std::uint8_t(head[1]) & 0x7f;
      const int wide = size == 126 ? 2 : size == 127 ? 8 : 0;
      if (wide > 0) {
        if (!connection_.fill(std::size_t(wide))) return {true, true, ""};
        size = 0;
        for (const char c : connection_.take(std::size_t(wide))) size = size << 8 | std::uint8_t(c);
      }
      if (!connection_.fill(size)) return {true, true, ""};
      std::string content = connection_.take(size);
      const int opcode = head[0] & 0x0f;
      if (opcode == 9) send(content, 10);
      if (opcode == 10) pongs.push_back(content);
      if (opcode == 8) return {true, true, "", false, content};
      if (opcode > 2) continue;
      if (opcode != 0) whole.is_text = opcode == 1;
      if (opcode != 0) whole.is_deflated = (head[0] & 0x40) != 0;
      whole.content += content;
      if ((head[0] & 0x80) != 0) return whole;
    }
  }
  // Something has come that was not read yet, and is not read by this. False: the connection has
  // ended before.
  bool await() { return connection_.fill(2); }
  // The next text, as JSON; null: the connection has ended.
  engine::Json read_json() {
    while (true) {
      const Message message = read();
      if (message.is_end) return {};
      if (message.is_text) return engine::parse_json(message.content, "message");
    }
  }

  // Says that nothing more comes from here.
  void end_sending() { ::shutdown(connection_.number(), SHUT_WR); }

  Reply reply;                     // to the handshake
  std::vector<std::string> pongs;  // that came between the messages that were read

 private:
  Connection connection_;
};

}  // namespace heddle::test
