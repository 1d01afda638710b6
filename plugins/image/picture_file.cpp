#include "plugins/image/picture_file.h"

#include <string_view>
#include <utility>

namespace heddle::image {
namespace {

constexpr std::uint64_t kMostBytes = 2ull << 30;  // above any file of the pictures that are read

}  // namespace

FileName annotated(std::string name) {
  for (const std::string_view folder : {"output", "input", "temp"}) {
    const std::string tag = "[" + std::string(folder) + "]";
    if (!name.ends_with(tag)) continue;
    const std::size_t cut = std::min(name.size(), tag.size() + 1);
    return {std::string(folder), name.substr(0, name.size() - cut)};
  }
  return {"input", std::move(name)};
}

Value read_file(const std::string& path) {
  return heddle::read_file(path, kMostBytes, "a picture");
}

std::span<const std::uint8_t> bytes_of(const Value& file) {
  const std::string_view content = file.text();
  return {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
}

std::uint64_t content_hash(std::span<const std::uint8_t> content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : content) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace heddle::image
