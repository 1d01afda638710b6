#include "library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::cuda {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const char* list) {
  std::vector<std::string> parts;
  std::string_view rest = list != nullptr ? list : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return parts;
}

std::vector<fs::path> folders_in(const fs::path& parent) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error))
    found.push_back(entry->path());
  std::sort(found.begin(), found.end());  // a folder's own order is chance
  return found;
}

// PREFIX/lib/python3.X/site-packages/nvidia/NAME/lib, for every prefix where a Python may stand,
// and what conda itself installs.
std::vector<fs::path> python_folders() {
  std::vector<fs::path> prefixes, found;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* value = std::getenv(name)) prefixes.emplace_back(value);
  std::error_code error;
  for (const std::string& folder : split(std::getenv("PATH"))) {
    // A link to a virtual environment's Python is a link itself: each of them has a folder of
    // packages.
    fs::path python = fs::path(folder) / "python3";
    for (int links = 0; links < 8 && fs::exists(python, error); ++links) {
      prefixes.push_back(python.parent_path().parent_path());
      const fs::path next = fs::read_symlink(python, error);
      if (error) break;
      python = next.is_absolute() ? next : python.parent_path() / next;
    }
  }
  if (const char* home = std::getenv("HOME")) prefixes.push_back(fs::path(home) / ".local");
  prefixes.emplace_back("/usr/local");  // of the system's Python, too, when root calls pip
  if (const char* conda = std::getenv("CONDA_PREFIX")) found.push_back(fs::path(conda) / "lib");
  for (const fs::path& prefix : prefixes)
    for (const char* lib : {"lib", "lib64"})
      for (const fs::path& python : folders_in(prefix / lib)) {
        if (!python.filename().string().starts_with("python3")) continue;
        for (const char* packages : {"site-packages", "dist-packages"})
          for (const fs::path& package : folders_in(python / packages / "nvidia"))
            found.push_back(package / "lib");
      }
  return found;
}

}  // namespace

void* open_library(const char* name) {
  const auto open = [](const fs::path& path) {
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  };
  const auto open_in = [&](const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / name, error) ? open(folder / name) : nullptr;
  };
  for (const std::string& folder : split(std::getenv("HEDDLE_CUDA_LIBRARIES")))
    if (void* found = open_in(folder)) return found;
  if (void* found = open(name)) return found;
  for (const char* toolkit : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(toolkit))
      if (void* found = open_in(fs::path(folder) / "lib64")) return found;
  if (void* found = open_in("/usr/local/cuda/lib64")) return found;
  for (const fs::path& folder : python_folders())
    if (void* found = open_in(folder)) return found;
  return nullptr;
}

}  // namespace heddle::cuda
