#include "engine/serve/pack_folders.h"

#include <algorithm>
#include <regex>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/serve/served_files.h"
#include "engine/serve/url.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kPythonFile{"a Python file", 4 << 20};
constexpr FileKind kProjectFile{"a project file", 1 << 20};
constexpr int kMostLevels = 16;
constexpr std::size_t kMostFiles = 10'000;

std::string text_in(const fs::path& file, const FileKind& kind) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return "";
  try {
    return read_file(file, kind);
  } catch (const Error&) {
    return "";
  }
}

std::string first_match(const std::string& text, const std::regex& what) {
  std::smatch match;
  return std::regex_search(text, match, what) ? match[2].str() : "";
}

// WEB_DIRECTORY = "./js" of the module, or web = "js" below [tool.comfy] of the project.
std::optional<fs::path> folder_of_scripts(const fs::path& pack) {
  static const std::regex module(R"re((^|\n)WEB_DIRECTORY[ \t]*=[ \t]*["']([^"'\n]+)["'])re");
  static const std::regex project(R"re((^|\n)web[ \t]*=[ \t]*["']([^"'\n]+)["'])re");
  std::string name = first_match(text_in(pack / "__init__.py", kPythonFile), module);
  if (name.empty()) {
    const std::string text = text_in(pack / "pyproject.toml", kProjectFile);
    const std::size_t begin = text.find("[tool.comfy]");
    if (begin != text.npos)
      name = first_match(text.substr(begin, text.find("\n[", begin) - begin), project);
  }
  if (name.empty()) return {};
  const std::optional<fs::path> folder = inside(pack, name);
  std::error_code ignored;
  return folder && fs::is_directory(*folder, ignored) ? folder : std::nullopt;
}

// The first of the names that packs use.
std::optional<fs::path> folder_of_templates(const fs::path& pack) {
  std::error_code ignored;
  for (const char* name : {"example_workflows", "example", "examples", "workflow", "workflows"})
    if (fs::is_directory(pack / name, ignored)) return pack / name;
  return {};
}

// Links are not followed: they may lead in circles, or out.
std::vector<fs::path> files_of(const fs::path& folder, std::string_view ending, int levels) {
  std::vector<fs::path> files;
  std::error_code error;
  const auto add = [&](const FolderEntry& entry, int depth) {
    if (files.size() >= kMostFiles) return false;
    if (entry.path.extension() == ending && !entry.is_link() && entry.is_file())
      files.push_back(entry.path);
    return depth + 1 < levels;
  };
  walk(folder, Links::stay, add, error);
  std::ranges::sort(files);
  return files;
}

std::string url_of(const fs::path& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : path) parts.push_back(percent_encoded(part.string()));
  return join(parts, "/");
}

std::optional<fs::path> file_in(const std::optional<fs::path>& folder, std::string_view name) {
  return folder && is_safe_name(name) ? inside(*folder, name) : std::nullopt;
}

}  // namespace

std::vector<fs::path> PackFolders::packs() const {
  std::vector<fs::path> packs;
  if (folder_.empty()) return packs;
  std::error_code error;
  for (const FolderEntry& entry : entries_of(folder_, error)) {
    const std::string name = entry.name();
    // As ComfyUI leaves them out.
    if (name.starts_with('.') || name == "__pycache__" || name.ends_with(".disabled")) continue;
    if (entry.is_folder()) packs.push_back(entry.path);
  }
  std::ranges::sort(packs);
  return packs;
}

std::optional<fs::path> PackFolders::pack_named(std::string_view name) const {
  const std::vector<fs::path> all = packs();
  const auto found = std::ranges::find_if(
      all, [&](const fs::path& pack) { return pack.filename().string() == name; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> PackFolders::scripts() const {
  std::vector<std::string> all;
  for (const fs::path& pack : packs()) {
    const std::optional<fs::path> folder = folder_of_scripts(pack);
    if (!folder) continue;
    for (const fs::path& file : files_of(*folder, ".js", kMostLevels))
      all.push_back(cat("/extensions/", percent_encoded(pack.filename().string()), "/",
                        url_of(file.lexically_relative(*folder))));
  }
  return all;
}

Json PackFolders::templates() const {
  Json all = Json::object();
  for (const fs::path& pack : packs()) {
    const std::optional<fs::path> folder = folder_of_templates(pack);
    if (!folder) continue;
    Json names = Json::array();
    for (const fs::path& file : files_of(*folder, ".json", 1)) names.push(file.stem().string());
    if (names.size() > 0) all.set(pack.filename().string(), std::move(names));
  }
  return all;
}

std::optional<fs::path> PackFolders::script_file(std::string_view pack,
                                                 std::string_view name) const {
  const std::optional<fs::path> folder = pack_named(pack);
  return file_in(folder ? folder_of_scripts(*folder) : std::nullopt, name);
}

std::optional<fs::path> PackFolders::template_file(std::string_view pack,
                                                   std::string_view name) const {
  const std::optional<fs::path> folder = pack_named(pack);
  return file_in(folder ? folder_of_templates(*folder) : std::nullopt, name);
}

}  // namespace heddle::engine
