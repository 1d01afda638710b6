// The one tensor of a latent as a file of safetensors, as ComfyUI's SaveLatent writes it. Reading
// takes hostile bytes. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <heddle/value.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heddle::image {

// notes: keys and texts of the header's metadata.
std::string latent_file(const Shape& shape, std::span<const float> values,
                        const std::vector<std::pair<std::string, std::string>>& notes);

struct LatentInFile {
  Shape shape;
  std::vector<float> values;
};
// Files of before the format had a version hold values times 0.18215. name begins every message;
// throws HEDDLE_INVALID_ARGUMENT for what is no such file.
LatentInFile read_latent_file(std::span<const std::uint8_t> bytes, const std::string& name);

}  // namespace heddle::image
