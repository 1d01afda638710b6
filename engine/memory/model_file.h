// Weights of models as a safetensors file, with their patches added: one after another, so that a
// model of any size takes little memory. Any thread.
#pragma once

#include <filesystem>
#include <map>
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
};

// Every tensor in the type that its own file has; sums are made in f32 and rounded once. The same
// weights give the same bytes, in whatever order they are named. False, and nothing done, where
// something has this name. Throws Error(unsupported) for types that safetensors do not know and for
// patched tensors that nothing is rounded to (8 bits, blocks), Error(invalid_argument) where two
// tensors would have one name or the rows of one differ in type or width, and what write_file.h
// throws.
bool create_model_file(const std::filesystem::path& path, std::span<const SavedTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace heddle::engine
