// The directory of a zip file: where the bytes of each entry stand in the file. Nothing is
// unpacked: PyTorch stores its entries as they are. A file is believed nothing. Pure functions; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace heddle::engine {

struct ZipEntry {
  std::string_view name;     // in the file's bytes
  std::uint64_t offset = 0;  // of the first byte, from the start of the file
  std::uint64_t size = 0;    // bytes, as they stand there
  bool is_plain = true;      // neither compressed nor encrypted
};

// Whether the file begins as a zip file does.
bool is_zip(std::span<const std::byte> file);

// The entries, sorted by name, of a file whose whole content is `file`; also of one of more than
// 4 GiB (zip64). Names are unique, every entry lies in the file, and no two share a byte. Throws
// Error(invalid_argument) for a file that is damaged or cut off, Error(unsupported) for a
// compressed or encrypted entry, which could not be mapped; messages start with `file_name`.
std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> file,
                                         std::string_view file_name);

}  // namespace heddle::engine
