#include "tests/house/sources.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

namespace house {
namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  static const std::set<std::string> endings{".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"};
  return endings.contains(path.extension().string());
}

}  // namespace

std::vector<SourceFile> sources(const std::string& folder) {
  std::vector<SourceFile> all;
  if (!fs::exists(kRoot / folder)) return all;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    SourceFile file{entry.path().lexically_relative(kRoot).generic_string(), {}};
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) file.lines.push_back(line);
    all.push_back(std::move(file));
  }
  std::ranges::sort(all, {}, &SourceFile::path);
  return all;
}

void for_each_include(
    const std::string& folder,
    const std::function<void(const SourceFile&, std::size_t, const std::string&)>& visit) {
  static const std::regex include(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  for (const SourceFile& file : sources(folder))
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      if (std::smatch match; std::regex_search(file.lines[i], match, include))
        visit(file, i + 1, match[1]);
}

std::string place(const SourceFile& file, std::size_t line) {
  return file.path + ":" + std::to_string(line) + ": ";
}

}  // namespace house
