#include "engine/resources/folders.h"

#include <algorithm>
#include <set>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

namespace {

namespace fs = std::filesystem;

// ComfyUI's older names of two folders; both are searched.
std::vector<std::string> spellings(std::string_view folder) {
  if (folder == "diffusion_models") return {"diffusion_models", "unet"};
  if (folder == "text_encoders") return {"text_encoders", "clip"};
  return {std::string(folder)};
}

bool leaves_its_folder(const fs::path& name) {
  if (name.is_absolute()) return true;
  return std::ranges::any_of(name, [](const fs::path& part) { return part == ".."; });
}

}  // namespace

Folders::Folders(std::vector<fs::path> models, fs::path input, fs::path output)
    : models_(std::move(models)), input_(std::move(input)), output_(std::move(output)) {}

std::vector<fs::path> Folders::roots(std::string_view folder) const {
  if (folder == "input") return {input_};
  if (folder == "output") return {output_};
  if (folder == "temp") return {output_ / "temp"};
  std::vector<fs::path> roots;
  for (const fs::path& models : models_)
    for (const std::string& name : spellings(folder)) roots.push_back(models / name);
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
  std::set<std::string> names;
  for (const fs::path& root : roots(folder)) {
    std::error_code error;
    if (widget_kind == HEDDLE_WIDGET_FOLDER) {
      for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
        if (it->is_directory(error)) names.insert(it->path().filename().string());
      continue;
    }
    for (fs::recursive_directory_iterator
             it(root, fs::directory_options::follow_directory_symlink, error),
         end;
         !error && it != end; it.increment(error)) {
      if (it.depth() > 8)
        it.disable_recursion_pending();  // a link that points upwards must not keep us here
      if (it->is_regular_file(error))
        names.insert(it->path().lexically_relative(root).generic_string());
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> Folders::places(std::string_view folder) const {
  std::vector<std::string> texts;
  for (const fs::path& root : roots(folder)) texts.push_back(root.string());
  return texts;
}

std::string Folders::output(std::string_view kind) const {
  if (kind != "output" && kind != "temp")
    throw Error(Code::invalid_argument, cat("there is no output folder of the kind ", quote(kind)));
  const fs::path folder = kind == "temp" ? output_ / "temp" : output_;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(Code::io, cat("the output folder ", folder.string(), " cannot be made: ",
                              error.message(), ". Name another one with --output"));
  return folder.string();
}

}  // namespace heddle::engine
