#include "engine/base/folder.h"

#include <cerrno>
#include <memory>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace fs = std::filesystem;

namespace {

struct Closed {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// Folders that are still to be read, the next one last.
struct Waiting {
  fs::path folder;
  int depth;
};

}  // namespace

bool FolderEntry::is_link() const {
  std::error_code gone;
  return kind == DT_UNKNOWN ? fs::is_symlink(fs::symlink_status(path, gone)) : kind == DT_LNK;
}

bool FolderEntry::is_folder() const {
  std::error_code gone;
  return kind == DT_DIR || ((kind == DT_UNKNOWN || kind == DT_LNK) && fs::is_directory(path, gone));
}

bool FolderEntry::is_file() const {
  std::error_code gone;
  return kind == DT_REG ||
         ((kind == DT_UNKNOWN || kind == DT_LNK) && fs::is_regular_file(path, gone));
}

std::vector<FolderEntry> entries_of(const fs::path& folder, std::error_code& error) {
  std::vector<FolderEntry> entries;
  error.clear();
  const std::unique_ptr<DIR, Closed> opened(::opendir(folder.c_str()));
  if (opened == nullptr) {
    error.assign(errno, std::generic_category());
    return entries;
  }
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(opened.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back({folder / name, entry->d_type});
  }
  if (errno != 0) error.assign(errno, std::generic_category());
  return entries;
}

std::vector<FolderEntry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<FolderEntry> entries = entries_of(folder, error);
  if (error) throw system_error(cat("reading the folder ", quote(folder.string())), error.value());
  return entries;
}

void walk(const fs::path& folder, Links links,
          const std::function<bool(const FolderEntry& entry, int depth)>& visit,
          std::error_code& error) {
  error.clear();
  std::vector<Waiting> waiting{{folder, 0}};
  while (!waiting.empty()) {
    const Waiting next = std::move(waiting.back());
    waiting.pop_back();
    std::error_code failure;
    for (const FolderEntry& entry : entries_of(next.folder, failure))
      if (visit(entry, next.depth) && (links == Links::follow || !entry.is_link()) &&
          entry.is_folder())
        waiting.push_back({entry.path, next.depth + 1});
    if (failure && !error) error = failure;
  }
}

}  // namespace heddle::engine
