// The gguf format, versions 2 and 3, little-endian:
//
//   1. "GGUF", version (u32), number of tensors (u64), number of metadata entries (u64)
//   2. the entries: key, type (u32), value; texts are a length (u64) and bytes, arrays the type of
//      their members (u32), their number (u64) and the members
//   3. for each tensor: name, number of axes (u32), sizes innermost first (u64 each), type (u32),
//      offset in the data section (u64), a multiple of the alignment
//   4. zeros up to a multiple of the alignment (entry "general.alignment", else 32); the data
//   section
//
// Here shapes are outermost first, as everywhere. A file is believed nothing: every length, offset
// and shape is checked against the file's size before anybody gets a view of its data. Only the
// header is read. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/files/tensor_file.h"

namespace heddle::engine {

struct GgufHeader {
  std::vector<TensorEntry> tensors;  // sorted by name
  // Numbers, truth values and texts, and arrays of at most 16 numbers ("[1, 2]"), all as text;
  // longer arrays, such as the words of a tokenizer, are left out.
  Metadata metadata;
  std::uint64_t data_offset = 0;  // of the data section, from the start of the file
};

// Whether the file begins as a gguf file does.
bool is_gguf(std::span<const std::byte> file);

// Reads the header of a file whose whole content is `file`; touches no byte behind the header. A
// tensor that was stored in another shape ("comfy.gguf.orig_shape." and its name) gets its own one
// back. Throws Error(invalid_argument) for a file that is damaged or incomplete,
// Error(unsupported) for another version or byte order and for element types unknown here; messages
// start with `file_name` and name the tensor or the entry.
GgufHeader parse_gguf(std::span<const std::byte> file, std::string_view file_name);

}  // namespace heddle::engine
