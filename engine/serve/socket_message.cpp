#include "engine/serve/socket_message.h"

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

std::string frame_header(bool is_text, bool is_deflated, std::size_t bytes) {
  constexpr int kWhole = 0x80, kDeflated = 0x40, kText = 1, kBinary = 2;
  std::string header{char(kWhole | (is_deflated ? kDeflated : 0) | (is_text ? kText : kBinary))};
  const int wide = bytes < 126 ? 0 : bytes < 65536 ? 2 : 8;
  header += char(wide == 0 ? int(bytes) : wide == 2 ? 126 : 127);
  for (int shift = 8 * (wide - 1); shift >= 0; shift -= 8) header += char(bytes >> shift);
  return header;
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
