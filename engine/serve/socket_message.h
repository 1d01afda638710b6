// A message of a WebSocket, made once for all that it goes to. Immutable; any thread.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace heddle::engine {

class SocketMessage {
 public:
  explicit SocketMessage(std::string content) : content_(std::move(content)) {}
  SocketMessage(const SocketMessage&) = delete;

  const std::string& content() const { return content_; }
  std::size_t size() const { return content_.size(); }

  // As permessage-deflate sends it (RFC 7692, section 7.2.1), with a window of 2^kWindowBits bytes
  // and nothing of other messages, so that it is right for every client that takes such a window.
  // Made for the first that asks. "": it is small, or would not become smaller.
  const std::string& deflated() const;

  static constexpr int kWindowBits = 12;

 private:
  const std::string content_;
  mutable std::once_flag is_deflated_;
  mutable std::string deflated_;  // is_deflated_
};

// The header of a frame with a whole message of so many bytes, as a server sends it (RFC 6455,
// section 5.2): without a mask.
std::string frame_header(bool is_text, bool is_deflated, std::size_t bytes);

// Whether the answer to a handshake, its Sec-WebSocket-Extensions ("": none), allows messages that
// are deflated as above.
bool takes_deflated(std::string_view extensions);

}  // namespace heddle::engine
