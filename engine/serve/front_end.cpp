#include "engine/serve/front_end.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPackage = "comfyui_frontend_package";
constexpr std::string_view kTemplates = "comfyui_workflow_templates";

fs::path environment_path(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

bool has_index(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "index.html", ignored);
}

// Of a folder, in their order.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const FolderEntry& entry : entries_of(folder, error))
    if (entry.is_folder()) found.push_back(entry.path);
  std::ranges::sort(found);
  return found;
}

// What pip writes beside a package: "comfyui_frontend_package-1.58.1.dist-info".
std::string version_of(const std::vector<fs::path>& packages, std::string_view name) {
  constexpr std::string_view kEnding = ".dist-info";
  for (const fs::path& package : packages) {
    std::string text = package.filename().string();
    if (!text.starts_with(cat(name, "-")) || !text.ends_with(kEnding)) continue;
    text.resize(text.size() - kEnding.size());
    return text.substr(name.size() + 1);
  }
  return "";
}

// Packages that lie in a folder of pip's.
void add_packages(FrontEnd& found, const fs::path& folder) {
  std::error_code ignored;
  const std::vector<fs::path> packages = folders_in(folder);
  for (const fs::path& package : packages)
    if (package.filename().string().starts_with(kTemplates) &&
        fs::is_directory(package / "templates", ignored))
      found.templates.push_back(package / "templates");
  if (const fs::path docs = folder / "comfyui_embedded_docs/docs"; fs::is_directory(docs, ignored))
    found.docs = docs;
  found.version = version_of(packages, kPackage);
  found.templates_version = version_of(packages, kTemplates);
}

std::optional<FrontEnd> front_end_in(const fs::path& given) {
  for (const fs::path& pages : {given, given / "static", given / kPackage / "static"}) {
    if (!has_index(pages)) continue;
    FrontEnd found;
    found.pages = pages;
    const fs::path package = pages.parent_path();
    if (package.filename() == kPackage && pages.filename() == "static")
      add_packages(found, package.parent_path());
    return found;
  }
  return {};
}

// Folders that pip installs into: of the active environment, of the user, of the system.
std::vector<fs::path> pip_folders() {
  std::vector<fs::path> roots, folders;
  if (const fs::path active = environment_path("VIRTUAL_ENV"); !active.empty())
    roots.push_back(active / "lib");
  if (const fs::path home = environment_path("HOME"); !home.empty())
    roots.push_back(home / ".local/lib");
  roots.insert(roots.end(), {"/usr/local/lib", "/usr/lib"});
  for (const fs::path& root : roots)
    for (const fs::path& python : folders_in(root))
      if (python.filename().string().starts_with("python3"))
        for (const char* packages : {"site-packages", "dist-packages"})
          folders.push_back(python / packages);
  return folders;
}

}  // namespace

FrontEnd find_front_end(const std::string& named) {
  if (named.empty()) return {};
  if (named == "pip") {
    for (const fs::path& folder : pip_folders())
      if (std::optional<FrontEnd> found = front_end_in(folder)) return *std::move(found);
    throw Error(
        Code::not_found,
        "--front-end: pip has not installed ComfyUI's front end. Install it with `pip install "
        "comfyui-frontend-package`, or name its folder.");
  }
  std::error_code ignored;
  // Whole and without a slash at its end, so that the names of the folders above are known.
  if (std::optional<FrontEnd> found = front_end_in(fs::weakly_canonical(named, ignored)))
    return *std::move(found);
  throw Error(Code::invalid_argument,
              cat("--front-end: there is no index.html in ", quote(named), "."));
}

}  // namespace heddle::engine
