// libFuzzer target: whatever the bytes, parse_pytorch() returns or throws Error; what it returns
// describes tensors that lie in the file and have as many bytes as their shape says. Build:
// clang++ -fsanitize=fuzzer,address,undefined.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/files/pytorch.h"

using namespace heddle::engine;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  is_pytorch(file);
  PytorchContent content;
  try {
    content = parse_pytorch(file, "fuzz");
  } catch (const Error& error) {
    require(std::string_view(error.what()).starts_with("fuzz: "),
            "an error starts with the file's name");
    return 0;
  }
  for (const TensorEntry& tensor : content.tensors) {
    require(tensor.offset <= size && tensor.size <= size - tensor.offset,
            "a tensor lies in the file");
    std::int64_t elements = 1;
    for (const std::int64_t length : tensor.shape) elements *= length;
    require(std::uint64_t(dtype_bytes(tensor.dtype, elements)) == tensor.size,
            "size is that of the shape");
  }
  const auto unordered =
      std::adjacent_find(content.tensors.begin(), content.tensors.end(),
                         [](const auto& a, const auto& b) { return a.name >= b.name; });
  require(unordered == content.tensors.end(), "names are sorted and unique");
  return 0;
}
