// Where the options of an engine say that files are. Any thread.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/resources/folders.h"
#include "heddle/engine.hpp"

namespace heddle {

// What is named by itself comes before what a ComfyUI folder says, and that before what ships.
// Throws engine::Error for a ComfyUI folder that is none.
engine::FolderLayout layout_of(const EngineOptions& options);
// Without what ships: where new files belong.
engine::FolderLayout own_layout_of(const EngineOptions& options);

// Where plugins are looked for, in this order, a later one's node types replacing an earlier one's:
// the folder of what ships, heddle/plugins in $XDG_DATA_HOME or $HOME/.local/share if it is there,
// the folders of $HEDDLE_PLUGIN_PATH (with colons between them), and those of the options. An
// option default_plugin_dir stands for all before the options' own.
std::vector<std::filesystem::path> plugin_folders(const EngineOptions& options);

}  // namespace heddle
