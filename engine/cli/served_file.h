// Files that a server has made, written here. Any thread.
#pragma once

#include <filesystem>
#include <string>

#include "engine/cli/server_client.h"

namespace heddle::cli {

// Where a file of this name goes that there may be already: "scene_00003_.png" is counted on, and
// "a.png" becomes "a_00001_.png". The number counts from 0: the name itself.
std::string numbered_name(const std::string& name, unsigned number);

// Downloads what is at `path` of the server into folder/subfolder, as `name` or the next one that
// is free; gives where it is. Throws Error(invalid_argument) for names that lead out of the folder,
// and for what cannot be written; else as ServerClient does.
std::filesystem::path download_file(const ServerClient& server, const std::string& path,
                                    const std::filesystem::path& folder,
                                    const std::string& subfolder, const std::string& name);

}  // namespace heddle::cli
