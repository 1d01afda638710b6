#include "engine/files/video_text.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kEbml("\x1a\x45\xdf\xa3", 4);

// The texts of a video by key, and what is wrong with its bytes.
class TaggedVideo {
 public:
  TaggedVideo(std::string_view content, std::string_view name) : content_(content), name_(name) {}

  std::optional<std::string> workflow() {
    if (content_.starts_with(kEbml))
      read_elements(content_);
    else
      read_boxes(content_, {});
    for (const char* key : {"prompt", "workflow"})
      if (const auto found = texts_.find(key); found != texts_.end() && !found->second.empty())
        return found->second;
    std::vector<std::string> keys;
    for (const auto& [key, text] : texts_) keys.push_back(quote(key));
    refuse(is_cut_ ? "it is cut off or damaged, and no workflow stands before that place"
                   : "this video has no workflow inside: no tag called 'prompt' or 'workflow'",
           keys.empty() ? "" : ", only ", join(keys, ", "),
           ". Videos lose it when another program saves them again.");
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(const Args&... what) const {
    throw Error(Code::invalid_argument, cat(printable(name_), ": ", what...));
  }

  static std::uint64_t big_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }

  bool cut() {
    is_cut_ = true;
    return false;
  }

  // ---- MP4: boxes of a size, a type of four letters, and what is in them ----

  // Takes a box off `rest`; false at the end, and where the rest is no box.
  bool next_box(std::string_view& rest, std::string_view& type, std::string_view& body) {
    if (rest.empty()) return false;
    if (rest.size() < 8) return cut();
    std::uint64_t size = big_endian(rest.substr(0, 4)), head = 8;
    type = rest.substr(4, 4);
    if (size == 1 && rest.size() >= 16) {
      size = big_endian(rest.substr(8, 8));
      head = 16;
    } else if (size == 0) {
      size = rest.size();
    }
    if (size < head || size > rest.size()) return cut();
    body = rest.substr(head, size - head);
    rest.remove_prefix(size);
    return true;
  }

  // The boxes that lead to tags: moov, in it udta, in either of them meta.
  void read_boxes(std::string_view rest, std::string_view parent) {
    std::string_view type, body;
    while (next_box(rest, type, body)) {
      if ((parent.empty() && type == "moov") || (parent == "moov" && type == "udta"))
        read_boxes(body, type);
      else if (!parent.empty() && type == "meta")
        read_meta(body);
    }
  }

  void read_meta(std::string_view body) {
    // MP4 has a version and flags in front, QuickTime has none.
    const bool is_plain = body.size() >= 8 && body.substr(4, 4) == "hdlr";
    if (!is_plain) body.remove_prefix(std::min<std::size_t>(4, body.size()));
    std::vector<std::string_view> keys;
    std::string_view type, content;
    while (next_box(body, type, content)) {
      if (type == "keys") keys = read_keys(content);
      if (type == "ilst") read_items(content, keys);
    }
  }

  std::vector<std::string_view> read_keys(std::string_view rest) {
    rest.remove_prefix(std::min<std::size_t>(8, rest.size()));  // version, flags, count
    std::vector<std::string_view> keys;
    std::string_view type, key;
    while (next_box(rest, type, key)) keys.push_back(key);
    return keys;
  }

  // The type of an item is the number of its key, from 1.
  void read_items(std::string_view rest, const std::vector<std::string_view>& keys) {
    std::string_view item, body, type, data;
    while (next_box(rest, item, body)) {
      const std::uint64_t number = big_endian(item);
      if (number == 0 || number > keys.size()) continue;
      while (next_box(body, type, data))
        if (type == "data" && data.size() >= 8)
          texts_.emplace(keys[number - 1], data.substr(8));  // behind its type and its language
    }
  }

  // ---- Matroska: elements of an id and a size, each of a length that its first bits tell ----

  // Takes a number off `rest`. keeps_marker: ids are written with the bit that tells their length.
  std::optional<std::uint64_t> next_number(std::string_view& rest, bool keeps_marker,
                                           std::size_t most) {
    if (rest.empty()) return std::nullopt;
    const auto first = static_cast<unsigned char>(rest[0]);
    std::size_t length = 1;
    while (length <= most && (first & (0x80u >> (length - 1))) == 0) ++length;
    if (length > most || length > rest.size()) {
      is_cut_ = true;
      return std::nullopt;
    }
    std::uint64_t number = big_endian(rest.substr(0, length));
    const std::uint64_t marker = std::uint64_t{1} << (7 * length);
    rest.remove_prefix(length);
    if (keeps_marker) return number;
    number &= marker - 1;
    return number == marker - 1 ? kUnknown : number;
  }

  // Of the elements that may hold tags, what is in them stands next; others are stepped over, but
  // for those of unknown size, whose parts then come as if they stood beside them.
  void read_elements(std::string_view rest) {
    std::string name;
    while (!rest.empty()) {
      const auto id = next_number(rest, true, 4);
      const auto size = id ? next_number(rest, false, 8) : std::nullopt;
      if (!size) return;
      const bool is_entered = *id == kSegment || *id == kTags || *id == kTag || *id == kSimpleTag;
      if (is_entered || *size == kUnknown) continue;
      if (*size > rest.size()) {
        is_cut_ = true;
        return;
      }
      const std::string_view body = rest.substr(0, *size);
      rest.remove_prefix(*size);
      if (*id == kTagName) name = lower_case(body);
      if (*id == kTagString) texts_.emplace(name, body.substr(0, body.find('\0')));
    }
  }

  static std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
  }

  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  static constexpr std::uint64_t kSegment = 0x18538067, kTags = 0x1254c367, kTag = 0x7373,
                                 kSimpleTag = 0x67c8, kTagName = 0x45a3, kTagString = 0x4487;

  std::string_view content_, name_;
  std::map<std::string, std::string, std::less<>> texts_;  // the first one of a key counts
  bool is_cut_ = false;
};

}  // namespace

bool is_video(std::string_view content) {
  return content.starts_with(kEbml) || (content.size() >= 8 && content.substr(4, 4) == "ftyp");
}

std::optional<std::string> workflow_in_video(std::string_view content, std::string_view name) {
  if (!is_video(content)) return std::nullopt;
  return TaggedVideo(content, name).workflow();
}

}  // namespace heddle::engine
