// Files of weights that are drawn at random, for models that are measured without being there. They
// stand in a folder of their own, in memory where that has room, and go with this object. The same
// tensors give the same numbers in every process, however many threads draw them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/tensor/dtype.h"

namespace heddle {

struct RandomTensor {
  std::string file;  // below the folder: "diffusion_models/flux-dev.safetensors"
  std::string name;
  engine::DType dtype = engine::DType::bf16;  // or f32, or i8: to the nearest, -127 to 127
  std::vector<std::int64_t> shape;
  double mean = 0, deviation = 1;
  // "X.weight" is told to be an int8 matrix whose rows are rotated (engine/files/packed_rows.h).
  bool is_rotated = false;

  std::uint64_t bytes() const;
};

class RandomFiles {
 public:
  // Throws Error: invalid_argument for names that leave the folder, for other types and for the
  // same tensor twice; out_of_memory when neither memory nor the system's folder for temporary
  // files has the room; io.
  explicit RandomFiles(const std::vector<RandomTensor>& tensors);
  ~RandomFiles();
  RandomFiles(const RandomFiles&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t bytes() const { return bytes_; }  // of all tensors

 private:
  std::filesystem::path folder_;
  std::uint64_t bytes_ = 0;
};

}  // namespace heddle
