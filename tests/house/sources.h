// The sources of the tree, for rules about them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace house {

inline const std::filesystem::path kRoot = HEDDLE_SOURCE_DIR;

struct SourceFile {
  std::string path;  // relative to the root
  std::vector<std::string> lines;
};

// All C, C++ and CUDA sources of a folder and of those within, in the order of their names; none
// where there is no such folder.
std::vector<SourceFile> sources(const std::string& folder);

// Calls visit(file, line number, included name) for every #include.
void for_each_include(
    const std::string& folder,
    const std::function<void(const SourceFile&, std::size_t, const std::string&)>& visit);

// "engine/base/text.h:12: "
std::string place(const SourceFile& file, std::size_t line);

}  // namespace house
