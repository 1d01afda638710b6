// The safetensors format: 8 bytes with the length of a JSON header, the header, the tensors' bytes.
// A file is believed nothing: every offset, shape and length is checked against the others and
// against the file's size, with the rules of the reference implementation, before anybody gets a
// view of its data. Only the header is read, so a file whose data section is a hole on disk costs
// nothing. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/files/tensor_file.h"

namespace heddle::engine {

// The reference implementation's limit.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // sorted by name
  Metadata metadata;                 // the member "__metadata__"
  std::uint64_t data_offset = 0;     // of the data section, from the start of the file
};

// Reads the header of a file whose whole content is `file`; touches no byte behind the header.
// Throws Error(invalid_argument) for a file that is damaged, incomplete or no safetensors file at
// all, Error(unsupported) for an element type unknown here; messages start with `file_name` and
// name the tensor.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view file_name);

}  // namespace heddle::engine
