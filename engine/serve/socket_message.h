// A message of a WebSocket, made once for all that it goes to. Immutable; any thread.
#pragma once

#include <memory>
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

// A message cut into the frames that it is sent in (RFC 6455, section 5.4): control frames come
// between them, so a ping does not wait for the end of a long message. One thread at a time.
class MessageFrames {
 public:
  struct Frame {
    std::string header;        // of a server: without a mask
    std::string_view content;  // of the message, as it is sent
    bool is_last = true;
  };
  // A text is deflated where the client `takes_deflated` and it becomes smaller.
  MessageFrames(std::shared_ptr<const SocketMessage> message, bool is_text, bool takes_deflated);

  const std::shared_ptr<const SocketMessage>& message() const { return message_; }
  Frame next();  // one at least; none behind the last

  static constexpr std::size_t kMostBytes = 0xffff;  // of the content of a frame

 private:
  std::shared_ptr<const SocketMessage> message_;
  std::string_view rest_;
  bool is_text_, is_deflated_, is_first_ = true;
};

// Whether the answer to a handshake, its Sec-WebSocket-Extensions ("": none), allows messages that
// are deflated as above.
bool takes_deflated(std::string_view extensions);

}  // namespace heddle::engine
