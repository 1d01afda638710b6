#include "library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace heddle::cuda {

void* open_library(const char* name) {
  const auto open = [](const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); };
  if (void* found = open(name)) return found;
  const char* named = std::getenv("HEDDLE_CUDA_LIBRARIES");
  std::string_view folders = named != nullptr ? named : "";
  while (!folders.empty()) {
    const std::size_t end = folders.find(':');
    if (void* found = open(std::string(folders.substr(0, end)) + "/" + name)) return found;
    folders = end == std::string_view::npos ? std::string_view() : folders.substr(end + 1);
  }
  return open(std::string("/usr/local/cuda/lib64/") + name);
}

}  // namespace heddle::cuda
