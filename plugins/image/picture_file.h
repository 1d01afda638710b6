// Picture files on the disk: the folder a name means, the bytes, a hash of them.
#pragma once

#include <cstdint>
#include <heddle/value.hpp>
#include <span>
#include <string>

namespace heddle::image {

struct FileName {
  std::string folder;  // "input", "output", "temp"
  std::string name;    // below it
};

// Takes "name.png [output]" apart as ComfyUI does: the tag and one character before it are cut off.
FileName annotated(std::string name);

// The whole file as a str; fails for what is no plain file or is larger than any picture that is
// read. Its bytes, as long as somebody shares it.
Value read_file(const std::string& path);
std::span<const std::uint8_t> bytes_of(const Value& file);

// FNV-1a, 64 bits.
std::uint64_t content_hash(std::span<const std::uint8_t> content);

}  // namespace heddle::image
