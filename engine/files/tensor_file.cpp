#include "engine/files/tensor_file.h"

#include <utility>

#include "engine/base/error.h"
#include "engine/files/gguf.h"
#include "engine/files/pytorch.h"
#include "engine/files/safetensors.h"

namespace heddle::engine {
namespace {

template <class Header>
TensorFile with_mapping(std::shared_ptr<const MappedFile> mapping, Header header) {
  const Hash128 hash = hash_bytes(mapping->bytes().first(header.data_offset));
  mapping->check();
  return {.mapping = std::move(mapping),
          .tensors = std::move(header.tensors),
          .metadata = std::move(header.metadata),
          .header_hash = hash};
}

}  // namespace

TensorFile open_tensor_file(const std::filesystem::path& path) {
  auto mapping = std::make_shared<const MappedFile>(path);
  const auto bytes = mapping->bytes();
  try {
    // A cut-off file of a few bytes is what its name says.
    if (is_gguf(bytes) || path.extension() == ".gguf")
      return with_mapping(mapping, parse_gguf(bytes, path.native()));
    if (is_pytorch(bytes)) {
      PytorchContent content = parse_pytorch(bytes, path.native());
      mapping->check();
      return {.mapping = mapping,
              .tensors = std::move(content.tensors),
              .metadata = std::move(content.metadata),
              .header_hash = content.hash};
    }
    return with_mapping(mapping, parse_safetensors(bytes, path.native()));
  } catch (const Error&) {
    mapping->check();  // zeros instead of a header would be called a fault of its text
    throw;
  }
}

}  // namespace heddle::engine
