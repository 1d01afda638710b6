#include "engine/resources/comfyui_folder.h"

#include <iterator>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/resources/extra_model_paths.h"

namespace heddle::engine {
namespace {

namespace fs = std::filesystem;

constexpr FileKind kPathsFile{"a file of model paths", 1 << 20};

bool is_installation(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "models", ignored) ||
         fs::exists(folder / "extra_model_paths.yaml", ignored) ||
         (fs::exists(folder / "main.py", ignored) && fs::is_directory(folder / "comfy", ignored));
}

void check(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw Error(Code::invalid_argument, cat("there is no folder ", quote(folder.string()), "."));
  if (is_installation(folder)) return;
  std::string advice = " Name the folder that holds models/, input/ and output/.";
  for (const fs::path& other : {folder / "ComfyUI", fs::absolute(folder).parent_path()})
    if (is_installation(other))
      advice = cat(" Did you mean ", quote(other.lexically_normal().string()), "?");
  throw Error(Code::invalid_argument,
              cat(quote(folder.string()),
                  " is no ComfyUI folder: there is neither models/ nor extra_model_paths.yaml nor "
                  "main.py with comfy/ in it.",
                  advice));
}

}  // namespace

ComfyUiFolder read_comfyui_folder(const fs::path& folder) {
  check(folder);
  ComfyUiFolder found{.layout = {.models = {},
                                 .input = folder / "input",
                                 .output = folder / "output",
                                 .temp = folder / "temp"},
                      .user = folder / "user"};
  ExtraModelPaths extra;
  const fs::path file = folder / "extra_model_paths.yaml";
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    if (can_read_extra_model_paths())
      extra = read_extra_model_paths(read_file(file, kPathsFile), file);
    else
      log(Level::warning, cat(file.string(),
                              " is not read: heddle was built without yaml-cpp. Install "
                              "libyaml-cpp-dev and build again."));
  }
  for (const std::string& remark : extra.remarks) log(Level::info, remark);
  std::vector<ModelPlace>& models = found.layout.models;
  // The last default comes first, as each is put before all others.
  models.assign(std::make_move_iterator(extra.defaults.rbegin()),
                std::make_move_iterator(extra.defaults.rend()));
  models.push_back({folder / "models"});
  models.insert(models.end(), std::make_move_iterator(extra.others.begin()),
                std::make_move_iterator(extra.others.end()));
  models.push_back({found.layout.output});  // what ComfyUI's saving nodes write: output/loras, ...
  return found;
}

}  // namespace heddle::engine
