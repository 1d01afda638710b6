// Weights of models as a safetensors file, with their patches added: one after another, so that a
// model of any size takes little memory. Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/files/checkpoint.h"
#include "engine/files/weight_patches.h"

namespace heddle::engine {

// A tensor of the file: rows of a checkpoint's tensors, one after another, as patches make them.
struct SavedTensor {
  std::string name;
  const Checkpoint* checkpoint = nullptr;
  const WeightPatches* patches = nullptr;  // nullptr: none
  std::vector<WeightPatch::Rows> rows;
  std::vector<std::int64_t> shape;  // empty: as the rows have it
  std::optional<DType> dtype = {};  // f32, f16 or bf16; absent: that of its own file
};

// Every tensor in the type that its own file has, or in the one that is asked for; sums are made in
// f32 and rounded once. The same
// weights give the same bytes, in whatever order they are named. False, and nothing done, where
// something has this name. Throws Error(unsupported) for types that safetensors do not know and for
// tensors of 8 bits or in blocks that would have to be made anew, Error(invalid_argument) where two
// tensors would have one name or the rows of one differ in type or width, and what write_file.h
// throws.
bool create_model_file(const std::filesystem::path& path, std::span<const SavedTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

// The rows as patches make them, one after another, in f32: out.size() is as many elements as they
// have. Throws as create_model_file() does.
void read_rows(const SavedTensor& tensor, std::span<float> out);

}  // namespace heddle::engine
