// What is in a folder. Not the iterators of std::filesystem: those of libstdc++ end the program
// where memory is out. Any thread.
#pragma once

#include <dirent.h>

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace heddle::engine {

// One file, folder, link or whatever else has a name.
struct FolderEntry {
  std::filesystem::path path;       // the folder's, and the name
  unsigned char kind = DT_UNKNOWN;  // as readdir() tells it, DT_...

  std::string name() const { return path.filename().string(); }
  bool is_link() const;
  // Links are followed. False for what has gone meanwhile, too.
  bool is_folder() const;
  bool is_file() const;  // a regular one
};

// Without "." and "..", in no order. `error` tells why the folder, or the rest of it, cannot be
// read; what was read is returned.
std::vector<FolderEntry> entries_of(const std::filesystem::path& folder, std::error_code& error);

// The same; throws Error (not_found, permission ... as system_error() has it) instead.
std::vector<FolderEntry> entries_of(const std::filesystem::path& folder);

enum class Links { stay, follow };

// Calls `visit` with everything below the folder, each folder before what is in it, and with how
// many folders are between: 0 for what is in it itself. `visit` returns whether to go on into a
// folder. Folders that cannot be read are left out; `error` is that of the first one.
void walk(const std::filesystem::path& folder, Links links,
          const std::function<bool(const FolderEntry& entry, int depth)>& visit,
          std::error_code& error);

}  // namespace heddle::engine
