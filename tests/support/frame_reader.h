// Reads the frames that a server sends over a WebSocket: by RFC 6455, section 5, and RFC 7692 to
// the letter, and with nothing of the server's. One thread at a time. Needs zlib.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::test {

class FrameReader {
 public:
  struct Message {
    bool is_text = true, was_deflated = false;
    std::string content;     // inflated
    std::size_t frames = 0;  // that it came in
  };
  struct Control {
    int opcode = 0;  // 8: close, 9: ping, 10: pong
    std::string content;
    bool is_within = false;  // between the frames of a message
  };

  // window_bits: those of permessage-deflate without a context of earlier messages; nothing: it
  // was not agreed upon.
  explicit FrameReader(std::optional<int> window_bits) : window_bits_(window_bits) {}

  // What comes next on the wire, in pieces of any length. Throws std::runtime_error that names what
  // is wrong.
  void read(std::string_view bytes) {
    buffer_ += bytes;
    std::size_t at = 0;
    while (const std::size_t taken = read_frame(std::string_view(buffer_).substr(at))) at += taken;
    buffer_.erase(0, at);
  }
  // A frame or a message has begun and not ended.
  bool is_within() const { return !buffer_.empty() || is_open_; }

  std::vector<Message> messages;
  std::vector<Control> controls;

 private:
  static void require(bool is_so, const char* what) {
    if (!is_so) throw std::runtime_error(what);
  }

  // Its bytes; 0: it is not there whole.
  std::size_t read_frame(std::string_view bytes) {
    if (bytes.size() < 2) return 0;
    require(!has_closed_, "nothing follows a close frame");
    const int first = std::uint8_t(bytes[0]), second = std::uint8_t(bytes[1]);
    require((first & 0x30) == 0, "RSV2 and RSV3 are 0");
    require((second & 0x80) == 0, "a server does not mask");
    std::uint64_t size = std::uint64_t(second);
    std::size_t head = 2;
    if (size >= 126) {
      head += size == 126 ? 2 : 8;
      const std::uint64_t least = size == 126 ? 126 : 65536;
      if (bytes.size() < head) return 0;
      size = 0;
      for (const char c : bytes.substr(2, head - 2)) size = size << 8 | std::uint8_t(c);
      require(size >= least, "a length has as few bytes as it can");
      require(size >> 63 == 0, "the first bit of a length is 0");
    }
    if (bytes.size() - head < size) return 0;
    const std::string_view content = bytes.substr(head, std::size_t(size));
    if ((first & 0x08) != 0)
      control(first, content);
    else
      data(first, content);
    return head + content.size();
  }

  void control(int first, std::string_view content) {
    const int opcode = first & 0x0f;
    require(opcode >= 8 && opcode <= 10, "a control frame is a close, a ping or a pong");
    require((first & 0x80) != 0, "a control frame is one frame");
    require((first & 0x40) == 0, "a control frame is not deflated");
    require(content.size() <= 125, "a control frame has 125 bytes at most");
    controls.push_back({opcode, std::string(content), is_open_});
    has_closed_ = opcode == 8;
  }

  void data(int first, std::string_view content) {
    const int opcode = first & 0x0f;
    const bool is_deflated = (first & 0x40) != 0;
    require(opcode <= 2, "a data frame is a text, binary, or goes on");
    require((opcode == 0) == is_open_, "a message goes on until its end, and one begins behind it");
    if (opcode != 0) {
      require(!is_deflated || window_bits_, "nothing is deflated where that was not agreed upon");
      open_ = {opcode == 1, is_deflated, "", 0};
    } else {
      require(!is_deflated, "only the first frame of a message has RSV1");
    }
    open_.content += content;
    ++open_.frames;
    is_open_ = (first & 0x80) == 0;
    if (is_open_) return;
    if (open_.was_deflated) open_.content = inflated(open_.content);
    messages.push_back(std::move(open_));
  }

  std::string inflated(std::string bytes) const {
    bytes.append("\x00\x00\xff\xff", 4);
    z_stream stream{};
    require(inflateInit2(&stream, -window_bits_.value()) == Z_OK, "there is memory");
    stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
    stream.avail_in = uInt(bytes.size());
    std::string content, piece(1 << 16, '\0');
    int code = Z_OK;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = uInt(piece.size());
      code = ::inflate(&stream, Z_SYNC_FLUSH);
      content.append(piece, 0, piece.size() - stream.avail_out);
    } while (code == Z_OK && stream.avail_out == 0);
    const bool is_whole = (code == Z_OK || code == Z_BUF_ERROR) && stream.avail_in == 0;
    inflateEnd(&stream);
    require(is_whole, "a deflated message is inflated by its own window");
    return content;
  }

  const std::optional<int> window_bits_;
  std::string buffer_;
  Message open_;
  bool is_open_ = false, has_closed_ = false;
};

}  // namespace heddle::test
