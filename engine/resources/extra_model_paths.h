// ComfyUI's extra_model_paths.yaml: sections, each with an optional base_path, an optional
// is_default, and names of folders with one path a line. Pure but for variables of the environment.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/resources/folders.h"

namespace heddle::engine {

struct ExtraModelPaths {
  std::vector<ModelPlace> defaults;  // of sections with is_default, in the order of the file
  std::vector<ModelPlace> others;
  std::vector<std::string> remarks;  // for people: what is left out
};

// False where heddle was built without yaml-cpp.
bool can_read_extra_model_paths();

// `file`: its path, which relative paths count from. "~", $NAME and ${NAME} in base_path are
// replaced; a variable that is not set stays. Throws Error(invalid_argument) with file and line.
ExtraModelPaths read_extra_model_paths(std::string_view text, const std::filesystem::path& file);

}  // namespace heddle::engine
