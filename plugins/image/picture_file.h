// Picture files on the disk: the folder a name means, the bytes, a hash of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::image {

struct FileName {
  std::string folder;  // "input", "output", "temp"
  std::string name;    // below it
};

// Takes "name.png [output]" apart as ComfyUI does: the tag and one character before it are cut off.
FileName annotated(std::string name);

// The whole file. Throws HEDDLE_IO, and HEDDLE_INVALID_ARGUMENT for what is no plain file or is
// larger than any picture that is read.
std::vector<std::uint8_t> read_file(const std::string& path);

// FNV-1a, 64 bits.
std::uint64_t content_hash(const std::vector<std::uint8_t>& content);

}  // namespace heddle::image
