// Files that are there whole or not at all: written beside their place under a name of their own,
// then renamed. Any thread.
#pragma once

#include <filesystem>
#include <string_view>

namespace heddle::core {

// Writes `content` to `path`, which is replaced in one step. The folder has to be there. Throws the
// system's error with the path; then the old file is as it was.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace heddle::core
