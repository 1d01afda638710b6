#include "engine/base/own_folder.h"

#include <dlfcn.h>
#include <link.h>

namespace heddle::engine {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::current_path() : program.parent_path();
}

fs::path library_folder() {
  // Found once: the name may be relative to the folder that the program was started in.
  static const fs::path folder = [] {
    Dl_info ignored{};
    link_map* map = nullptr;
    const auto* here = reinterpret_cast<const void*>(&library_folder);
    const bool found =
        ::dladdr1(here, &ignored, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
    // The dynamic loader has no name for the program itself.
    if (!found || map == nullptr || map->l_name == nullptr || *map->l_name == '\0')
      return program_folder();
    std::error_code error;
    const fs::path library = fs::canonical(map->l_name, error);
    return error ? program_folder() : library.parent_path();
  }();
  return folder;
}

}  // namespace heddle::engine
