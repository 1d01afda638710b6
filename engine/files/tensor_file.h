// What every format of weight files comes down to: a mapping of the file, and for each tensor where
// its bytes stand in it. Immutable once made; shared by all checkpoints that use the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/hash.h"
#include "engine/base/mapped_file.h"
#include "engine/tensor/dtype.h"

namespace heddle::engine {

using Metadata =
    std::vector<std::pair<std::string, std::string>>;  // in the file's order, keys are unique

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  // Row-major, outermost first; {} is one element, a 0 among the sizes means none.
  std::vector<std::int64_t> shape = {};
  std::uint64_t offset =
      0;                   // of the first byte, from the start of the file; not necessarily aligned
  std::uint64_t size = 0;  // bytes
};

struct TensorFile {
  std::shared_ptr<const MappedFile> mapping;
  std::vector<TensorEntry> tensors;  // sorted by name, names are unique
  Metadata metadata;
  Hash128 header_hash = {};  // of the bytes that describe the tensors, not of their data
};

// Maps a file of any format, gguf, safetensors or torch.save's, and reads what describes its
// tensors. Which one it is its first bytes say. Throws what MappedFile, parse_gguf(),
// parse_pytorch() and parse_safetensors() throw.
TensorFile open_tensor_file(const std::filesystem::path& path);

}  // namespace heddle::engine
