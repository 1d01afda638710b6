// Packs of nodes in Python, as ComfyUI has them: where they are, and the workers that run them. A
// pack is a folder with an __init__.py, or one file, that defines NODE_CLASS_MAPPINGS. Its worker
// is the user's Python with our script (sdk/python_nodes), which speaks the protocol of
// heddle_worker.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/isolate/isolated_plugin.h"
#include "engine/resources/folders.h"
#include "heddle/isolation.hpp"

namespace heddle::engine {

// The file of each pack, in the order of the folders and of the names in them. A folder without an
// __init__.py is one of packs: those whose names begin with "." or "__" or end with ".disabled" are
// left out. What is neither a folder nor a file is given back as it is, to be refused.
std::vector<std::filesystem::path> python_packs(const std::vector<std::filesystem::path>& folders);

bool is_python(const std::filesystem::path& file);

// `folders`: what folder_paths tells. Throws not_found where there is no Python, or our script is
// not there; both say where they were looked for.
WorkerKind python_worker(const std::filesystem::path& pack, const Isolation& isolation,
                         const FolderLayout& folders);

}  // namespace heddle::engine
