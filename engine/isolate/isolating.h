// Plugins that run in processes of their own: how the engine opens them, instead of loading them
// here.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/plugin/loader.h"
#include "engine/resources/folders.h"
#include "heddle/isolation.hpp"

namespace heddle::engine {

// Opens the plugins that `isolation` names in workers, and packs of Python nodes, and loads all
// others here. `files`: of all plugins that there are. `folders`: what packs are told of. Throws
// not_found, in the frame of the option, for a name that none of them has. What it opens throws:
// unsupported for a plugin that brings more than nodes; io where the worker's program is not there
// or ends.
OpenPlugin isolating(const Isolation& isolation, const std::vector<std::filesystem::path>& files,
                     const FolderLayout& folders);

}  // namespace heddle::engine
