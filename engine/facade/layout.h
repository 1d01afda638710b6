// Where the options of an engine say that files are. Any thread.
#pragma once

#include "engine/resources/folders.h"
#include "heddle/engine.hpp"

namespace heddle {

// What is named by itself comes before what a ComfyUI folder says, and that before what ships.
// Throws engine::Error for a ComfyUI folder that is none.
engine::FolderLayout layout_of(const EngineOptions& options);
// Without what ships: where new files belong.
engine::FolderLayout own_layout_of(const EngineOptions& options);

}  // namespace heddle
