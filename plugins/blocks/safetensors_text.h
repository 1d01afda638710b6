// Small files of safetensors that nodes write and read whole: latents, conditionings. Model files
// are read by heddle/model.hpp. Reading takes hostile bytes. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <heddle/node.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heddle::blocks {

struct StoredTensor {
  std::string name;
  heddle_dtype dtype = HEDDLE_F32;
  Shape shape;
  std::span<const std::uint8_t> bytes;  // row-major, little-endian
};

// notes: keys and texts of the header's metadata. In ComfyUI's layout, byte for byte. Throws
// HEDDLE_UNSUPPORTED for elements that the format has no name for.
std::string safetensors_text(std::span<const StoredTensor> tensors,
                             const std::vector<std::pair<std::string, std::string>>& notes);

struct StoredTensors {
  std::vector<StoredTensor> tensors;  // they look into the bytes that were read
  Value notes;                        // a record of texts; absent where there is none
  // Absent: NULL.
  const StoredTensor* find(const std::string& name) const;
};
// What a file is for, in errors: "NAME: this is no latent: it is too short. Save it anew with
// SaveLatent.".
struct KindOfFile {
  const char *what, *advice;
};
// Throws HEDDLE_INVALID_ARGUMENT, beginning with the name, for what is no such file.
StoredTensors read_safetensors(std::span<const std::uint8_t> bytes, const std::string& name,
                               const KindOfFile& kind);

// The tensor in host memory, its elements as they are.
class HostBytes {
 public:
  HostBytes(Context& ctx, const Tensor& tensor);
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};
Tensor to_tensor(Context& ctx, const StoredTensor& stored);

}  // namespace heddle::blocks
