// libFuzzer target: whatever the bytes, parse_safetensors() returns or throws Error; what it
// returns describes each byte of the data section exactly once and nothing outside of it. Build:
// clang++ -fsanitize=fuzzer,address,undefined.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"
#include "engine/files/safetensors.h"

using namespace heddle::engine;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  SafetensorsHeader header;
  try {
    header = parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  } catch (const Error& error) {
    require(std::string_view(error.what()).starts_with("fuzz: "),
            "an error starts with the file's name");
    return 0;
  }
  require(header.data_offset >= 8 && header.data_offset <= size,
          "the data section lies in the file");
  std::uint64_t bytes = 0;
  for (const TensorEntry& tensor : header.tensors) {
    require(tensor.offset >= header.data_offset && tensor.offset <= size,
            "a tensor begins in the data section");
    require(tensor.size <= size - tensor.offset, "a tensor ends in the file");
    std::uint64_t elements = 1;
    for (const std::int64_t length : tensor.shape) elements *= static_cast<std::uint64_t>(length);
    require(elements * dtype_size(tensor.dtype) == tensor.size, "size is shape times element size");
    bytes += tensor.size;
  }
  require(bytes == size - header.data_offset, "the tensors fill the data section");
  const auto unordered =
      std::adjacent_find(header.tensors.begin(), header.tensors.end(),
                         [](const auto& a, const auto& b) { return a.name >= b.name; });
  require(unordered == header.tensors.end(), "names are sorted and unique");
  return 0;
}
