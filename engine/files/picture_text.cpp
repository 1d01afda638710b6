#include "engine/files/picture_text.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::size_t kMostText = 64 << 20;  // bytes that a compressed text may have

using Texts = std::map<std::string, std::string, std::less<>>;  // by key; the first one counts

class Picture {
 public:
  explicit Picture(std::string_view name) : name_(name) {}

  template <typename... Args>
  [[noreturn]] void refuse(const Args&... what) const {
    throw Error(Code::invalid_argument, cat(printable(name_), ": ", what...));
  }

  // The first `size` bytes of `rest`, which loses them.
  std::string_view take(std::string_view& rest, std::uint64_t size, std::string_view what) const {
    if (size > rest.size())
      refuse(what, " needs ", size, " bytes, and the file has ", rest.size(),
             " more: it is cut off or damaged.");
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view name_;
};

enum class Order { big, little };

std::uint64_t number(std::string_view bytes, Order order) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t at = order == Order::big ? i : bytes.size() - 1 - i;
    value = value << 8 | static_cast<unsigned char>(bytes[at]);
  }
  return value;
}

std::string latin1_to_utf8(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xC0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return out;
}

// The format says Latin-1, and many write UTF-8.
std::string to_utf8(std::string_view text) {
  return find_invalid_utf8(text) ? latin1_to_utf8(text) : std::string(text);
}

class PngTexts : Picture {
 public:
  PngTexts(std::string_view content, std::string_view name) : Picture(name), rest_(content) {}

  Texts read() {
    rest_.remove_prefix(kPngSignature.size());
    while (!rest_.empty()) {
      const std::uint64_t size = number(take(rest_, 4, "a chunk"), Order::big);
      const std::string_view type = rest_.substr(0, std::min<std::size_t>(4, rest_.size()));
      const std::string_view body = take(rest_, 4 + size, "a chunk of the PNG file");
      const std::uint64_t sum = number(take(rest_, 4, "a checksum"), Order::big);
      if (type == "IEND") break;
      const bool is_text = type == "tEXt" || type == "zTXt" || type == "iTXt" || type == "comf";
      if (!is_text) continue;
      const auto* bytes = reinterpret_cast<const Bytef*>(body.data());
      if (::crc32(0, bytes, static_cast<uInt>(body.size())) != sum)
        refuse("the checksum of its ", type, " chunk is wrong: the file is damaged.");
      add(type, body.substr(4));
    }
    return std::move(texts_);
  }

 private:
  void add(std::string_view type, std::string_view body) {
    const std::string key(until_nul(body));
    if (key != "prompt" && key != "workflow") {
      texts_.emplace(key, "");
    } else if (type == "zTXt") {
      texts_.emplace(key, to_utf8(inflated(compressed(body))));
    } else if (type == "iTXt") {
      const std::string_view flags = take(body, 2, "an iTXt chunk");
      until_nul(body);  // language
      until_nul(body);  // translated key
      texts_.emplace(key, flags[0] == 0 ? std::string(body) : inflated(body));
    } else {
      texts_.emplace(key, to_utf8(body));
    }
  }

  std::string_view until_nul(std::string_view& body) const {
    const std::size_t end = body.find('\0');
    if (end == std::string_view::npos) refuse("a text chunk of it has no end of its key.");
    const std::string_view text = body.substr(0, end);
    body.remove_prefix(end + 1);
    return text;
  }

  std::string_view compressed(std::string_view body) const {
    if (take(body, 1, "a zTXt chunk")[0] != 0)
      refuse("a zTXt chunk is compressed in no known way.");
    return body;
  }

  std::string inflated(std::string_view bytes) const {
    z_stream stream{};
    if (::inflateInit(&stream) != Z_OK) throw std::bad_alloc();
    const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &::inflateEnd);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    std::string text;
    for (int result = Z_OK; result != Z_STREAM_END;) {
      char piece[1 << 14];
      stream.next_out = reinterpret_cast<Bytef*>(piece);
      stream.avail_out = sizeof piece;
      result = ::inflate(&stream, Z_NO_FLUSH);
      const std::size_t got = sizeof piece - stream.avail_out;
      if ((result != Z_OK && result != Z_STREAM_END) || (got == 0 && result != Z_STREAM_END))
        refuse("a compressed text chunk of it is damaged.");
      text.append(piece, got);
      if (text.size() > kMostText)
        refuse("a compressed text chunk of it has more than ", format_bytes(kMostText), ".");
    }
    return text;
  }

  std::string_view rest_;
  Texts texts_;
};

class WebpTexts : Picture {
 public:
  WebpTexts(std::string_view content, std::string_view name) : Picture(name), rest_(content) {}

  Texts read() {
    rest_.remove_prefix(12);
    while (rest_.size() >= 8) {
      const std::string_view type = take(rest_, 4, "a chunk");
      const std::uint64_t size = number(take(rest_, 4, "a chunk"), Order::little);
      const std::string_view body = take(rest_, size, "a chunk of the WebP file");
      if (size % 2 == 1 && !rest_.empty()) rest_.remove_prefix(1);
      if (type == "EXIF") read_exif(body);
    }
    return std::move(texts_);
  }

 private:
  std::uint64_t at(std::string_view exif, std::uint64_t offset, std::size_t size) const {
    if (offset > exif.size() || size > exif.size() - offset)
      refuse("its EXIF block is damaged: it points behind its end.");
    return number(exif.substr(offset, size), order_);
  }

  // A directory of tags. ComfyUI puts "prompt:{...}" and "workflow:{...}" into those for texts,
  // beginning with 0x0110 and 0x010F and going down.
  void read_exif(std::string_view exif) {
    if (exif.starts_with(std::string_view("Exif\0\0", 6))) exif.remove_prefix(6);
    if (!exif.starts_with("II") && !exif.starts_with("MM")) refuse("its EXIF block is damaged.");
    order_ = exif.starts_with("II") ? Order::little : Order::big;
    const std::uint64_t directory = at(exif, 4, 4);
    const std::uint64_t count = at(exif, directory, 2);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t entry = directory + 2 + 12 * i;
      constexpr std::uint64_t kText = 2;
      if (at(exif, entry + 2, 2) != kText) continue;
      const std::uint64_t size = at(exif, entry + 4, 4);
      const std::uint64_t place = size <= 4 ? entry + 8 : at(exif, entry + 8, 4);
      at(exif, place, 0);
      if (size > exif.size() - place) refuse("its EXIF block is damaged: a text has no end.");
      std::string_view text = exif.substr(place, size);
      text = text.substr(0, text.find('\0'));
      const std::size_t colon = text.find(':');
      if (colon != std::string_view::npos)
        texts_.emplace(text.substr(0, colon), to_utf8(text.substr(colon + 1)));
    }
  }

  std::string_view rest_;
  Order order_ = Order::little;
  Texts texts_;
};

}  // namespace

std::optional<std::string> workflow_in_picture(std::string_view content, std::string_view name) {
  const bool is_png = content.starts_with(kPngSignature);
  const bool is_webp =
      content.size() >= 12 && content.starts_with("RIFF") && content.substr(8, 4) == "WEBP";
  if (!is_png && !is_webp) return std::nullopt;
  Texts texts = is_png ? PngTexts(content, name).read() : WebpTexts(content, name).read();
  for (const char* key : {"prompt", "workflow"})
    if (const auto found = texts.find(key); found != texts.end() && !found->second.empty())
      return std::move(found->second);
  std::vector<std::string> keys;
  for (const auto& [key, text] : texts) keys.push_back(quote(key));
  Picture(name).refuse("this picture has no workflow inside: no text called 'prompt' or 'workflow'",
                       keys.empty() ? "" : ", only ", join(keys, ", "),
                       ". Pictures lose it when another program saves them again.");
}

}  // namespace heddle::engine
