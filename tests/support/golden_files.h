// Reads the files below `tests` that tests compare with; HEDDLE_TESTS_DIR names that folder.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/read_text.h"

namespace heddle::test {

inline std::filesystem::path tests_folder() { return HEDDLE_TESTS_DIR; }

// The files of that extension (".json") in a folder below `tests`, by name.
inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                                   const std::string& extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(tests_folder() / folder))
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace heddle::test
