#include "plugins/image/exif_text.h"

#include <cstdint>
#include <map>

namespace heddle::image {
namespace {

constexpr std::uint16_t kModel = 0x0110, kMake = 0x010f, kAscii = 2;

void put_exif_number(std::string& to, std::uint32_t value, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) to += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace

std::string exif_of(const std::vector<blocks::WorkflowPart>& parts) {
  std::map<std::uint16_t, std::string> texts;  // a directory's tags rise
  std::uint16_t next = kMake;
  for (const blocks::WorkflowPart& part : parts) {
    const bool is_prompt = part.key == "prompt" && !texts.contains(kModel);
    texts[is_prompt ? kModel : next--] = part.key + ":" + part.json + std::string(1, '\0');
  }
  if (texts.empty()) return "";
  std::string block("MM\0\x2a\0\0\0\x08", 8), contents;
  const std::size_t begin = 8 + 2 + 12 * texts.size() + 4;
  put_exif_number(block, static_cast<std::uint32_t>(texts.size()), 2);
  for (const auto& [tag, text] : texts) {
    put_exif_number(block, tag, 2);
    put_exif_number(block, kAscii, 2);
    put_exif_number(block, static_cast<std::uint32_t>(text.size()), 4);
    if (text.size() <= 4) {
      block += text + std::string(4 - text.size(), '\0');
      continue;
    }
    put_exif_number(block, static_cast<std::uint32_t>(begin + contents.size()), 4);
    contents += text;
    if (contents.size() % 2 == 1) contents += '\0';  // values begin at even places
  }
  put_exif_number(block, 0, 4);  // no other directory
  return block + contents;
}

}  // namespace heddle::image
