#include "engine/serve/socket_message.h"

#include <algorithm>
#include <charconv>
#include <exception>

#include "engine/serve/compression.h"

namespace heddle::engine {
namespace {

constexpr std::size_t kWorthDeflating = 1024;  // bytes; less fits into one packet anyway

}  // namespace

const std::string& SocketMessage::deflated() const {
  std::call_once(is_deflated_, [this] {
    if (content_.size() < kWorthDeflating) return;
    try {
      std::string smaller = deflated_message(content_, kWindowBits);
      if (smaller.size() < content_.size()) deflated_ = std::move(smaller);
    } catch (const std::exception&) {  // no memory: it goes as it is
    }
  });
  return deflated_;
}

MessageFrames::MessageFrames(std::shared_ptr<const SocketMessage> message, bool is_text,
                             bool takes_deflated)
    : message_(std::move(message)), rest_(message_->content()), is_text_(is_text) {
  static const std::string kNone;
  const std::string& deflated = is_text && takes_deflated ? message_->deflated() : kNone;
  is_deflated_ = !deflated.empty();
  if (is_deflated_) rest_ = deflated;
}

// Section 5.2; of a deflated message only the first frame says so (RFC 7692, section 6.1).
MessageFrames::Frame MessageFrames::next() {
  constexpr int kLast = 0x80, kDeflated = 0x40, kText = 1, kBinary = 2, kGoesOn = 0;
  Frame frame;
  frame.content = rest_.substr(0, std::min(rest_.size(), kMostBytes));
  rest_.remove_prefix(frame.content.size());
  frame.is_last = rest_.empty();
  const int opcode = !is_first_ ? kGoesOn : is_text_ ? kText : kBinary;
  frame.header =
      char((frame.is_last ? kLast : 0) | (is_deflated_ && is_first_ ? kDeflated : 0) | opcode);
  is_first_ = false;
  const std::size_t bytes = frame.content.size();
  if (bytes < 126) {
    frame.header += char(bytes);
  } else {
    frame.header += {char(126), char(bytes >> 8), char(bytes)};
  }
  return frame;
}

bool takes_deflated(std::string_view extensions) {
  constexpr std::string_view kBits = "server_max_window_bits=";
  if (!extensions.starts_with("permessage-deflate")) return false;
  const std::size_t at = extensions.find(kBits);
  if (at == extensions.npos) return true;  // 15
  const std::string_view number = extensions.substr(at + kBits.size());
  int bits = 0;
  std::from_chars(number.data(), number.data() + number.size(), bits);
  return bits >= SocketMessage::kWindowBits;
}

}  // namespace heddle::engine
