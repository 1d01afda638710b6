// A server for fuzzers, and connections to it over loopback that leave nothing behind.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace heddle::test {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// libFuzzer's alarm interrupts whatever waits.
template <class Call>
auto uninterrupted(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

class FuzzConnection {
 public:
  // receive_bytes: what the system keeps until it is read; 0: as it likes.
  explicit FuzzConnection(std::uint16_t port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0)
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    // A port that waits for what is late would be missing soon: thousands are used in a second.
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int connected = uninterrupted(
        [&] { return ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address); });
    require(connected == 0 || errno == EISCONN, "the server takes a connection");
  }
  ~FuzzConnection() { ::close(socket_); }
  FuzzConnection(const FuzzConnection&) = delete;

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent =
          uninterrupted([&] { return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); });
      if (sent <= 0) return;  // the server has heard enough
      text.remove_prefix(std::size_t(sent));
    }
  }
  void end() const { ::shutdown(socket_, SHUT_WR); }

  // What comes until the text ends with `end`; empty: until the server is done.
  std::string read(std::string_view end = {}) const {
    std::string text;
    while (end.empty() || !text.ends_with(end)) {
      const std::string piece = next(end.empty() ? 4096 : 1);
      if (piece.empty()) break;
      text += piece;
    }
    return text;
  }
  // What is there of what comes, `most` bytes; waits for one. "": the server is done.
  std::string next(std::size_t most) const {
    pollfd wait{socket_, POLLIN, 0};
    require(uninterrupted([&] { return ::poll(&wait, 1, 30'000); }) > 0,
            "the server answers, or ends the connection");
    std::string piece(most, '\0');
    const ssize_t got = uninterrupted([&] { return ::recv(socket_, piece.data(), most, 0); });
    piece.resize(got > 0 ? std::size_t(got) : 0);
    return piece;
  }

 private:
  const int socket_;
};

}  // namespace heddle::test
