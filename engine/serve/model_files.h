// What stands in and beside files of models, for people who choose one. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/base/json.h"

namespace heddle::engine {

// "__metadata__" of the header of a safetensors file. Nothing where there is none, or where the
// header has more than `most_bytes`.
std::optional<Json> model_metadata(const std::filesystem::path& file, std::uint64_t most_bytes);

// The bytes of a picture file that shows what a model makes: one beside it, "NAME.png" or
// "NAME.preview.png" of NAME.safetensors (or .jpg, .webp, ...); else the first of the pictures
// that tools for training write into its header. Nothing where there is none.
std::optional<std::string> model_preview(const std::filesystem::path& model);

}  // namespace heddle::engine
