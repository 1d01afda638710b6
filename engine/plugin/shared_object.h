// A look at a file before the system's loader maps it: that one waits for ever at a pipe, and of a
// file that is cut off it touches pages that are not there, which ends the process.
#pragma once

#include <filesystem>

namespace heddle::engine {

// Reads the headers only. Any thread. Throws Error with the path: what opening it fails with;
// invalid_argument when it is no regular file, no shared object of this machine, or shorter than
// what its headers say that the loader is to map.
void check_shared_object(const std::filesystem::path& path);

}  // namespace heddle::engine
