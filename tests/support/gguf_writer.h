// Makes gguf files for tests, right ones and broken ones. Independent of the engine's reader.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::test {

template <class T>
std::string gguf_number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string gguf_text(std::string_view text) {
  return gguf_number(std::uint64_t(text.size())).append(text);
}

// ggml's numbers of element types, and of types of entries.
enum : std::uint32_t {
  kGgmlF32 = 0,
  kGgmlF16 = 1,
  kGgmlQ4_0 = 2,
  kGgmlQ8_0 = 8,
  kGgmlQ2_K = 10,
  kGgmlQ4_K = 12,
  kGgmlQ6_K = 14,
  kGgmlBF16 = 30
};
enum : std::uint32_t {
  kGgufU8 = 0,
  kGgufI32 = 5,
  kGgufU32 = 4,
  kGgufF32 = 6,
  kGgufBool = 7,
  kGgufText = 8,
  kGgufArray = 9,
  kGgufU64 = 10
};

struct GgufEntry {
  std::string key;
  std::uint32_t type;
  std::string value;  // its bytes: gguf_number(), gguf_text(), gguf_array()
};

inline std::string gguf_array(std::uint32_t type, const std::vector<std::string>& members) {
  std::string bytes = gguf_number(type) + gguf_number(std::uint64_t(members.size()));
  for (const std::string& member : members) bytes += member;
  return bytes;
}

struct GgufTensor {
  std::string name;
  std::uint32_t type;
  std::vector<std::uint64_t> sizes;  // innermost first
  std::string bytes;
  std::uint64_t offset = ~std::uint64_t(0);  // in the data section; all ones: behind the one before
};

struct GgufContent {
  std::vector<GgufEntry> entries = {};
  std::vector<GgufTensor> tensors = {};
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
};

inline std::string gguf_bytes(const GgufContent& content) {
  const auto padded = [&](std::string bytes) {
    bytes.resize((bytes.size() + content.alignment - 1) / content.alignment * content.alignment);
    return bytes;
  };
  std::string file = "GGUF" + gguf_number(content.version) +
                     gguf_number(std::uint64_t(content.tensors.size())) +
                     gguf_number(std::uint64_t(content.entries.size()));
  for (const GgufEntry& entry : content.entries)
    file += gguf_text(entry.key) + gguf_number(entry.type) + entry.value;
  std::string data;
  for (const GgufTensor& tensor : content.tensors) {
    file += gguf_text(tensor.name) + gguf_number(std::uint32_t(tensor.sizes.size()));
    for (const std::uint64_t size : tensor.sizes) file += gguf_number(size);
    const bool follows = tensor.offset == ~std::uint64_t(0);
    file += gguf_number(tensor.type) +
            gguf_number(follows ? std::uint64_t(data.size()) : tensor.offset);
    data = padded(data + tensor.bytes);
  }
  return content.tensors.empty() ? file : padded(file) + data;
}

}  // namespace heddle::test
