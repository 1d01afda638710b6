// Reads a file whole. Any thread; throws std::runtime_error with its path.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace heddle::test {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path.string());
  // Not by iterators: tests are not optimised, and large files take seconds so.
  std::string text(std::filesystem::file_size(path), '\0');
  stream.read(text.data(), std::streamsize(text.size()));
  if (!stream) throw std::runtime_error("cannot read " + path.string());
  return text;
}

}  // namespace heddle::test
