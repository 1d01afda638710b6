// Plugins that run in processes of their own: how the engine opens them, instead of loading them
// here.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/plugin/loader.h"
#include "engine/resources/environment.h"
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

// In the flags of a node of an isolated plugin that does not want the host: it has it until its
// devices are found to share memory with workers. The last two bits are those of front ends
// (heddle/abi/front_end.h).
inline constexpr std::uint32_t kNodeMayUseDevices = 1u << 29;

// When the devices are open, and before anything is bound: where each of them shares its memory
// with workers, such nodes are placed as any others.
void place_isolated_nodes(const Catalog& catalog, const std::vector<RunDevice>& devices);

}  // namespace heddle::engine
