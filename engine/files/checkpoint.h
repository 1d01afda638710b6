// A checkpoint: one name space of tensors over one file or over several shards. Nothing is loaded:
// a tensor's data are pages of a mapped file. A Checkpoint is a cheap, immutable handle; copies
// share everything and may be used by any thread. CheckpointCache (checkpoint_cache.h) makes the
// checkpoints of all nodes share their mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/hash.h"
#include "engine/files/packed_rows.h"
#include "engine/files/tensor_file.h"

namespace heddle::engine {

struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape = {};  // row-major, outermost first; {} is one element
  std::span<const std::byte>
      data;  // little-endian, not necessarily aligned; lives as long as `file`
  std::shared_ptr<const TensorFile> file;
  std::span<const std::byte> scale_data = {};  // the f32 that scale() reads; empty: there is none
  std::optional<DType> cast = {};              // Checkpoint::cast()
  bool is_scaled_fp8 = false;                  // Checkpoint::scale_to_fp8()
  // How numbers are made of a row of `data`; nullptr: they are as `dtype` and scale() say. `shape`
  // is that of the numbers then, of which several may stand in an element of `dtype`.
  std::shared_ptr<const PackedRows> packed = {};
  bool is_widened = false;  // Checkpoint::widen()
  // Checkpoint::join(): the identity of the checkpoint that it was a tensor of.
  std::optional<Hash128> joined_from = {};

  // What the elements of an f8 tensor are multiplied by: the number beside it in the file, named
  // "X.scale_weight" or "X.weight_scale" for "X.weight"; else 1.
  float scale() const;

  // Of the data's first byte in the file: for read-ahead and for messages.
  std::uint64_t file_offset() const;
};

class Checkpoint {
 public:
  // Sorted by name. The views live as long as this checkpoint or a copy of it.
  std::span<const TensorView> tensors() const;

  // Those whose name starts with `prefix`, sorted.
  std::span<const TensorView> with_prefix(std::string_view prefix) const;

  const TensorView* find(std::string_view name) const;  // nullptr when absent
  bool has(std::string_view name) const { return find(name) != nullptr; }

  // Throws Error(not_found) with the path and the nearest names.
  const TensorView& at(std::string_view name) const;

  // An entry of the files' own metadata ("format", "modelspec.architecture"); of several shards the
  // first one's that has it.
  std::optional<std::string_view> metadata(std::string_view key) const;

  // The tensors below `prefix`, named without it: strip_prefix("model.diffusion_model.").
  Checkpoint strip_prefix(std::string_view prefix) const;

  // These tensors, and those of `other` with `prefix` before their names. Path and metadata are
  // this one's. Throws Error(invalid_argument) where two have a name.
  Checkpoint join(const Checkpoint& other, std::string_view prefix) const;

  // The same tensors, whose matrices are to be made `dtype` (an f8 type) where they are multiplied:
  // each number rounded once, to nearest even. Throws Error(invalid_argument) when a tensor is in
  // blocks, which is quantised already.
  Checkpoint cast(DType dtype) const;

  // As cast() to f8_e4m3, and devices may multiply the matrices in 8 bits: both operands of a
  // product rounded, each row of both with a scale of its own.
  Checkpoint scale_to_fp8() const;

  // The same tensors, of which those named that are quantised are made 16 or 32 bits on their way
  // to a device, whatever it could multiply. Throws Error(unsupported) for one that is in blocks.
  Checkpoint widen(std::span<const std::string> tensors) const;

  // In the order in which metadata are looked up. As long as this checkpoint or a copy of it lives.
  std::span<const std::shared_ptr<const TensorFile>> files() const;
  std::uint64_t total_bytes() const;          // of the data of tensors()
  const std::filesystem::path& path() const;  // as it was given to open_checkpoint()

  // For cache keys: equal for the same files (canonical path, size, times of change, header) and
  // the same prefix and cast, scaled or not.
  Hash128 identity() const;

 private:
  friend Checkpoint open_checkpoint(
      const std::filesystem::path& path,
      const std::function<std::shared_ptr<const TensorFile>(const std::filesystem::path&)>& open);
  struct Content;
  explicit Checkpoint(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  std::shared_ptr<const Content> content_;
};

// How open_checkpoint() comes by a file of tensors.
using TensorFileOpener =
    std::function<std::shared_ptr<const TensorFile>(const std::filesystem::path&)>;

// Opens a safetensors, gguf or PyTorch file, or all the shards that an index (a ".json" file with a
// "weight_map", beside its shards) names. Tensors of a shard that the index does not name are left
// out. Throws Error with the path: not_found (file, shard or tensor missing), io, unsupported (an
// f8 tensor with a scale for each row), and what parse_json and open_tensor_file throw.
Checkpoint open_checkpoint(const std::filesystem::path& path, const TensorFileOpener& open);
Checkpoint open_checkpoint(const std::filesystem::path& path);  // maps the files anew

}  // namespace heddle::engine
