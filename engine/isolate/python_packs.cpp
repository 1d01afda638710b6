#include "engine/isolate/python_packs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/json.h"
#include "engine/base/own_folder.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

namespace fs = std::filesystem;

bool is_left_out(const std::string& name) {
  return name.starts_with(".") || name.starts_with("__") || name.ends_with(".disabled");
}

// One that can be started.
bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

fs::path named_python(const fs::path& python) {
  if (is_program(python)) return fs::absolute(python);
  throw Error(Code::not_found, cat(python.string(),
                                   " is no program. Give --python the Python, 3.9 "
                                   "or later, that packs of nodes run in"))
      .at(option_frame("python"));
}

fs::path find_python(const fs::path& given) {
  if (!given.empty()) return named_python(given);
  const auto environment = [](const char* name) -> std::string_view {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  };
  if (const std::string_view venv = environment("VIRTUAL_ENV"); !venv.empty())
    if (const fs::path python = fs::path(venv) / "bin/python3"; is_program(python)) return python;
  const std::string_view all = environment("PATH");
  for (std::string_view rest = all; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path folder(rest.substr(0, end));
    if (folder.is_absolute() && is_program(folder / "python3")) return folder / "python3";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  throw Error(Code::not_found,
              cat("nodes in Python need a python3, 3.9 or later, and there is none "
                  "in $VIRTUAL_ENV or in ",
                  quote(all), " ($PATH). Install one, or name one by --python"));
}

// In lib/heddle of what is installed, in the source tree above a build folder.
fs::path worker_script() {
  std::vector<std::string> places;
  std::error_code error;
  for (const fs::path& folder : {library_folder(), program_folder()}) {
    const fs::path above = folder.parent_path();
    for (const fs::path& place :
         {above / "lib/heddle/python_nodes", above / "heddle/python_nodes", folder / "python_nodes",
          above / "sdk/python_nodes", above.parent_path() / "sdk/python_nodes"}) {
      if (fs::is_regular_file(place / "worker.py", error)) return place / "worker.py";
      if (std::ranges::find(places, place.string()) == places.end())
        places.push_back(place.string());
    }
  }
  throw Error(Code::not_found, cat("worker.py, which runs nodes in Python, is not in ",
                                   join(places, ", "), ". Install it with heddle."));
}

std::string describe_folders(const FolderLayout& folders) {
  Json models = Json::array();
  for (const ModelPlace& place : folders.models) {
    Json one = Json::array();
    one.push(fs::absolute(place.path).string());
    one.push(place.folder);
    models.push(std::move(one));
  }
  const fs::path temp = folders.temp.empty() ? folders.output / "temp" : folders.temp;
  Json all = Json::object();
  all.set("models", std::move(models))
      .set("input", fs::absolute(folders.input).string())
      .set("output", fs::absolute(folders.output).string())
      .set("temp", fs::absolute(temp).string());
  return write_json(all);
}

}  // namespace

bool is_python(const fs::path& file) { return file.extension() == ".py"; }

std::vector<fs::path> python_packs(const std::vector<fs::path>& folders) {
  std::vector<fs::path> packs;
  std::error_code error;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder, error)) {
      packs.push_back(folder);
      continue;
    }
    if (fs::is_regular_file(folder / "__init__.py", error)) {
      packs.push_back(folder / "__init__.py");
      continue;
    }
    std::vector<fs::path> here;
    for (const FolderEntry& entry : entries_of(folder, error)) {
      if (is_left_out(entry.path.filename())) continue;
      if (is_python(entry.path) && entry.is_file())
        here.push_back(entry.path);
      else if (fs::is_regular_file(entry.path / "__init__.py", error))
        here.push_back(entry.path / "__init__.py");
    }
    std::ranges::sort(here);
    packs.insert(packs.end(), here.begin(), here.end());
  }
  return packs;
}

WorkerKind python_worker(const fs::path& pack, const Isolation& isolation,
                         const FolderLayout& folders) {
  WorkerKind kind;
  kind.settings.plugin = fs::absolute(pack).string();
  kind.settings.program = find_python(isolation.python).string();
  kind.settings.before = {worker_script().string()};
  kind.settings.behind = {describe_folders(folders)};
  kind.settings.memory_bytes = isolation.memory_bytes;
  kind.settings.sandbox = isolation.sandbox;
  kind.call_seconds = isolation.call_seconds;
  return kind;
}

}  // namespace heddle::engine
