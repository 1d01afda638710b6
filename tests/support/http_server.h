// A small HTTP server on this machine for tests of downloads: one file at a time, with ranges, and
// the faults that a test asks for. It runs on a thread of its own until it is destroyed.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace heddle::test {

class HttpServer {
 public:
  struct File {
    std::string content;
    std::string etag = "\"first\"";  // with its quotes; empty: none is sent
    std::size_t cut_after = 0;       // bytes of an answer, then the connection is closed; 0: never
    int status = 0;                  // another than 200 and 206; 0: none
    std::string location = {};       // of a redirection
    bool takes_ranges = true;
  };

  HttpServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::setenv("no_proxy", "127.0.0.1", 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || ::bind(listener_, raw, size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, raw, &size) != 0)
      throw std::runtime_error("no server can be started");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  HttpServer(const HttpServer&) = delete;

  std::string url(const std::string& name = "file") const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/" + name;
  }
  void give(File file) {
    const std::lock_guard lock(mutex_);
    file_ = std::move(file);
  }
  // The requests until now: "GET /file", or "GET /file from 5".
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (true) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      answer(client);
      ::close(client);
    }
  }

  static std::string header_of(const std::string& request, const std::string& name) {
    const std::size_t at = request.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return request.substr(begin, request.find("\r\n", begin) - begin);
  }

  void answer(int client) {
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t size = ::recv(client, buffer, sizeof buffer, 0);
      if (size <= 0) return;
      request.append(buffer, std::size_t(size));
    }
    File file;
    std::string told = request.substr(0, request.find(" HTTP/"));
    const std::string range = header_of(request, "Range"),
                      if_range = header_of(request, "If-Range");
    {
      const std::lock_guard lock(mutex_);
      file = file_;
      requests_.push_back(range.empty() ? told : told + " from " + range.substr(6));
    }
    if (told.ends_with("/elsewhere")) file.location = file.status == 0 ? url() : "";
    if (!file.location.empty())
      return send(client, "HTTP/1.1 302 Found\r\nLocation: " + file.location +
                              "\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone");
    if (file.status != 0)
      return send(client, "HTTP/1.1 " + std::to_string(file.status) +
                              " No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    std::size_t from = 0;
    const bool is_part = file.takes_ranges && !range.empty() && if_range == file.etag;
    if (is_part) from = std::stoul(range.substr(6));
    const std::size_t size = file.content.size();
    if (is_part && from >= size)
      return send(client, "HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    std::string text = is_part ? "HTTP/1.1 206 Part\r\nContent-Range: bytes " +
                                     std::to_string(from) + "-" + std::to_string(size - 1) + "/" +
                                     std::to_string(size) + "\r\n"
                               : "HTTP/1.1 200 OK\r\n";
    if (!file.etag.empty()) text += "ETag: " + file.etag + "\r\n";
    text += "Content-Length: " + std::to_string(size - from) + "\r\nConnection: close\r\n\r\n";
    const std::size_t most = file.cut_after == 0 ? size : file.cut_after;
    send(client, text + file.content.substr(from, most));
  }

  static void send(int client, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(client, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += std::size_t(sent);
    }
    ::shutdown(client, SHUT_WR);
    char rest[256];
    while (::recv(client, rest, sizeof rest, 0) > 0) {
    }
  }

  const int listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  File file_;                          // guarded by mutex_
  std::vector<std::string> requests_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace heddle::test
