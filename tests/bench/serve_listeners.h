// Many WebSocket clients of one server, read by one thread that looks at as little as it can: what
// is measured is the server.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/engine/serve/http_client.h"

namespace heddle::test {

// What counts is one job of nobody's, from the message that the queue has it to the one that the
// queue is empty, and whatever comes behind that: the end of an earlier job may still be told to
// those that connected early.
class Listeners {
 public:
  // Back when the server has greeted each: from then on it is told all.
  Listeners(std::uint16_t port, int count) {
    for (int i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<Client>(port));
      clients_.back()->connection.send(
          "GET /ws?clientId=listener" + std::to_string(i) +
          " HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
      clients_.back()->connection.read_reply();
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
    wait_for(greeted_);
  }

  // Waits until each was told of the job's end, and nothing comes any more; what was received, in
  // words.
  std::string finish() {
    const bool have_ended = wait_for(ended_);
    thread_.request_stop();
    thread_.join();
    const Client& first = *clients_.front();
    int different = 0, least = first.messages, most = first.messages;
    for (const auto& client : clients_) {
      different += client->hash != first.hash || client->messages != first.messages;
      least = std::min(least, client->messages);
      most = std::max(most, client->messages);
    }
    std::string text = std::to_string(first.messages) + " messages, of which " +
                       std::to_string(first.pictures) + " pictures; " + std::to_string(different) +
                       " clients got others than the first";
    if (different > 0)
      text += " (" + std::to_string(least) + " to " + std::to_string(most) + " messages)";
    return have_ended ? text : text + "; not all were told of the end within 30 s";
  }

 private:
  struct Client {
    explicit Client(std::uint16_t port) : connection(port) {}
    Connection connection;
    std::string buffer;
    std::size_t hash = 0;
    int messages = 0, pictures = 0;
    bool has_begun = false, has_ended = false;
  };

  // False: not all of them in 30 s.
  bool wait_for(const std::atomic<std::size_t>& count) const {
    for (int tries = 0; tries < 6000; ++tries) {
      if (count == clients_.size()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  void read(const std::stop_token& stop) {
    std::vector<pollfd> waits;
    for (const auto& client : clients_) waits.push_back({client->connection.number(), POLLIN, 0});
    std::vector<char> piece(1 << 20);
    while (true) {
      const int ready = ::poll(waits.data(), waits.size(), 300);
      if (ready <= 0 && stop.stop_requested()) return;
      for (std::size_t i = 0; i < waits.size(); ++i) {
        if ((waits[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
        const ssize_t got = ::recv(waits[i].fd, piece.data(), piece.size(), 0);
        if (got <= 0) {
          waits[i].fd = -1;
          continue;
        }
        Client& client = *clients_[i];
        client.buffer.append(piece.data(), std::size_t(got));
        while (take_frame(client)) {
        }
      }
    }
  }

  // A server's frames have no mask, and its messages here are of one frame.
  bool take_frame(Client& client) {
    const std::string_view all = client.buffer;
    if (all.size() < 2) return false;
    std::size_t at = 2;
    std::uint64_t size = std::uint8_t(all[1]) & 0x7f;
    if (const int wide = size == 126 ? 2 : size == 127 ? 8 : 0; wide > 0) {
      if (all.size() < at + std::size_t(wide)) return false;
      size = 0;
      for (; at < 2 + std::size_t(wide); ++at) size = size << 8 | std::uint8_t(all[at]);
    }
    if (all.size() < at + size) return false;
    const std::string_view content = all.substr(at, size);
    const auto says = [&](std::string_view text) { return content.find(text) != content.npos; };
    if (says("\"sid\""))  // the first one, with the client's own id
      ++greeted_;
    else if (says("\"queue_remaining\":1}"))
      client.has_begun = true;
    else if (client.has_begun && says("\"queue_remaining\":0}") &&
             !std::exchange(client.has_ended, true))
      ++ended_;
    if (client.has_begun) {
      client.hash = client.hash * 31 + std::hash<std::string_view>()(content);
      ++client.messages;
      client.pictures += (all[0] & 0x0f) == 2;
    }
    client.buffer.erase(0, at + size);
    return true;
  }

  std::vector<std::unique_ptr<Client>> clients_;
  std::atomic<std::size_t> greeted_ = 0, ended_ = 0;
  std::jthread thread_;
};

}  // namespace heddle::test
