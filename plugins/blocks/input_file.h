// Files that a workflow names for reading: the folder a name means, their bytes, a hash of them.
#pragma once

#include <cstdint>
#include <heddle/node.hpp>
#include <span>
#include <string>

namespace heddle::blocks {

struct FileName {
  std::string folder;  // "input", "output", "temp"
  std::string name;    // below it
};

// Takes "name.png [output]" apart as ComfyUI does: the tag and one character before it are cut off.
FileName annotated(std::string name);

// The path of the file that a name with or without a tag means. Throws with the places searched.
std::string find_input(Context& ctx, const std::string& name);

// The bytes of a str, as long as somebody shares it.
std::span<const std::uint8_t> bytes_of(const Value& file);

// FNV-1a, 64 bits.
std::uint64_t content_hash(std::span<const std::uint8_t> content);

}  // namespace heddle::blocks
