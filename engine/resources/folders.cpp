#include "engine/resources/folders.h"

#include <algorithm>
#include <set>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/text.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

namespace {

namespace fs = std::filesystem;

// The folders of ComfyUI's models that go by two names; both are searched, the first one first.
struct TwoNames {
  std::string_view name, first, second;
};
constexpr TwoNames kTwoNames[] = {{"diffusion_models", "unet", "diffusion_models"},
                                  {"text_encoders", "text_encoders", "clip"},
                                  {"controlnet", "controlnet", "t2i_adapter"}};

// "diffusion_models" of "unet".
std::string_view todays_name(std::string_view folder) {
  for (const TwoNames& names : kTwoNames)
    if (folder == names.first || folder == names.second) return names.name;
  return folder;
}

// Folders that hold no files of models.
constexpr std::string_view kOthers[] = {"input", "output", "temp", "configs"};
// ComfyUI's, gguf, and indices of shards. What else lies there says "put_loras_here" or explains.
constexpr std::string_view kEndings[] = {".ckpt",        ".pt",  ".pt2", ".bin",  ".pth",
                                         ".safetensors", ".pkl", ".sft", ".gguf", ".json"};

bool is_model_file(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

bool leaves_its_folder(const fs::path& name) {
  if (name.is_absolute()) return true;
  return std::ranges::any_of(name, [](const fs::path& part) { return part == ".."; });
}

}  // namespace

fs::path Folders::temp() const {
  return layout_.temp.empty() ? layout_.output / "temp" : layout_.temp;
}

std::vector<fs::path> Folders::roots(std::string_view folder) const {
  if (folder == "input") return {layout_.input};
  if (folder == "output") return {layout_.output};
  if (folder == "temp") return {temp()};
  const std::string_view wanted = todays_name(folder);
  const auto* names = std::ranges::find(kTwoNames, wanted, &TwoNames::name);
  std::vector<fs::path> roots;
  const auto add = [&](fs::path root) {
    if (std::ranges::find(roots, root) == roots.end()) roots.push_back(std::move(root));
  };
  for (const ModelPlace& place : layout_.models) {
    if (folder.empty()) {
      add(place.path);
    } else if (!place.folder.empty()) {
      if (todays_name(place.folder) == wanted) add(place.path);
    } else if (names == std::end(kTwoNames)) {
      add(place.path / wanted);
    } else {
      add(place.path / names->first);
      add(place.path / names->second);
    }
  }
  return roots;
}

std::string Folders::find(std::string_view folder, std::string_view name) const {
  if (name.empty())
    throw Error(Code::invalid_argument, cat("no name was given for a file of ", quote(folder)));
  if (leaves_its_folder(fs::path(name)))
    throw Error(Code::invalid_argument, cat("the name ", quote(name), " leaves its folder ",
                                            quote(folder), ". Name a file below it"));
  std::vector<std::string> searched;
  for (const fs::path& root : roots(folder)) {
    const fs::path candidate = root / fs::path(name);
    std::error_code ignored;
    if (fs::exists(candidate, ignored)) return candidate.string();
    searched.push_back(candidate.string());
  }
  const bool is_input = folder == "input";
  throw Error(Code::not_found,
              cat("there is no file ", quote(name), "; looked for: ", join(searched, ", "),
                  is_input ? ". Put it there, or name another folder with --input."
                           : ". Put it there, or name its folder with --models.",
                  did_you_mean(name, list(folder, HEDDLE_WIDGET_FILE))));
}

std::vector<std::string> Folders::list(std::string_view folder, std::int32_t widget_kind) const {
  const bool all_files = std::ranges::find(kOthers, folder) != std::end(kOthers);
  std::set<std::string> names;
  for (const fs::path& root : roots(folder)) {
    std::error_code error;
    if (widget_kind == HEDDLE_WIDGET_FOLDER) {
      for (const FolderEntry& entry : entries_of(root, error))
        if (entry.is_folder()) names.insert(entry.name());
      continue;
    }
    const auto add = [&](const FolderEntry& entry, int depth) {
      if ((all_files || is_model_file(entry.path)) && entry.is_file())
        names.insert(entry.path.lexically_relative(root).generic_string());
      return depth <= 8;  // a link that points upwards must not keep us here
    };
    walk(root, Links::follow, add, error);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> Folders::places(std::string_view folder) const {
  std::vector<std::string> texts;
  for (const fs::path& root : roots(folder)) texts.push_back(root.string());
  return texts;
}

fs::path Folders::place_for_new(std::string_view folder) const {
  const std::vector<fs::path> all = roots(folder);
  std::error_code ignored;
  const auto there = std::ranges::find_if(
      all, [&](const fs::path& root) { return fs::is_directory(root, ignored); });
  return there != all.end() ? *there : all.empty() ? fs::path() : all.front();
}

std::string Folders::output(std::string_view kind) const {
  if (kind != "output" && kind != "temp")
    throw Error(Code::invalid_argument, cat("there is no output folder of the kind ", quote(kind)));
  const fs::path folder = kind == "temp" ? temp() : layout_.output;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(Code::io, cat("the output folder ", folder.string(), " cannot be made: ",
                              error.message(), ". Name another one with --output"));
  return folder.string();
}

}  // namespace heddle::engine
