// What a ComfyUI installation says about where files are: its folders, and the places that its
// extra_model_paths.yaml adds. Nothing of ComfyUI's is run. Any thread.
#pragma once

#include <filesystem>

#include "engine/resources/folders.h"

namespace heddle::engine {

struct ComfyUiFolder {
  FolderLayout layout;         // places of models in ComfyUI's order
  std::filesystem::path user;  // workflows and settings of its users
};

// Logs what is left out: custom nodes, and the file of paths where this build cannot read it.
// Throws Error(invalid_argument) for a folder that is no installation and for a file of paths that
// is wrong, with its line.
ComfyUiFolder read_comfyui_folder(const std::filesystem::path& folder);

}  // namespace heddle::engine
