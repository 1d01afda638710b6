// libFuzzer target: whatever the bytes, parse_gguf() returns or throws Error; what it returns
// describes tensors that lie in the file, share no byte and have as many bytes as their shape says.
// Build: clang++ -fsanitize=fuzzer,address,undefined.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/files/gguf.h"

using namespace heddle::engine;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  GgufHeader header;
  try {
    header = parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  } catch (const Error& error) {
    require(std::string_view(error.what()).starts_with("fuzz: "),
            "an error starts with the file's name");
    return 0;
  }
  require(header.data_offset <= size, "the data section begins in the file");
  for (const TensorEntry& tensor : header.tensors) {
    require(tensor.offset >= header.data_offset && tensor.offset <= size,
            "a tensor begins in the data section");
    require(tensor.size <= size - tensor.offset, "a tensor ends in the file");
    std::int64_t elements = 1;
    for (const std::int64_t length : tensor.shape) elements *= length;
    require(std::uint64_t(dtype_bytes(tensor.dtype, elements)) == tensor.size,
            "size is that of the shape");
  }
  const auto unordered =
      std::adjacent_find(header.tensors.begin(), header.tensors.end(),
                         [](const auto& a, const auto& b) { return a.name >= b.name; });
  require(unordered == header.tensors.end(), "names are sorted and unique");
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < header.tensors.size(); ++i) {
    const TensorEntry &before = header.tensors[i - 1], &here = header.tensors[i];
    require(before.size == 0 || here.size == 0 || before.offset + before.size <= here.offset,
            "no two tensors share a byte");
  }
  return 0;
}
