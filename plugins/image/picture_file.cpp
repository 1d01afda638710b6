#include "plugins/image/picture_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <heddle/plugin.hpp>
#include <string_view>
#include <system_error>

namespace heddle::image {
namespace {

constexpr std::uint64_t kMostBytes = 2ull << 30;  // above any PNG of the pictures that are read

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

std::vector<std::uint8_t> read_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw Error(HEDDLE_INVALID_ARGUMENT, path + ": this is no file. Name a PNG file.");
  const std::uint64_t size = fs::file_size(path, error);
  if (!error && size > kMostBytes)
    throw Error(HEDDLE_INVALID_ARGUMENT, path + ": " + std::to_string(size) +
                                             " bytes are more than the " +
                                             std::to_string(kMostBytes) +
                                             " that are read of a picture. Give a smaller one.");
  std::ifstream stream;
  if (!error) stream.open(path, std::ios::binary);
  std::vector<std::uint8_t> content(error ? 0 : size);
  errno = 0;
  stream.read(reinterpret_cast<char*>(content.data()),
              static_cast<std::streamsize>(content.size()));
  if (error || !stream)
    throw Error(HEDDLE_IO, path + ": cannot be read: " +
                               (error ? error.message() : std::generic_category().message(errno)) +
                               ". Check its permissions.");
  return content;
}

std::uint64_t content_hash(const std::vector<std::uint8_t>& content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : content) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace heddle::image
