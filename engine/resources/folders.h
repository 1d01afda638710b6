// Where files are: model folders laid out as people have them (checkpoints/, diffusion_models/,
// ...), an input folder, an output folder. Names come from workflows and may not leave their
// folder. Immutable; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::engine {

// A place of model files. `folder`: the one folder whose files lie right there ("loras"); empty:
// all folders do, each under its name.
struct ModelPlace {
  std::filesystem::path path;
  std::string folder = {};
};

struct FolderLayout {
  std::vector<ModelPlace> models;  // in the order they are searched
  std::filesystem::path input, output;
  std::filesystem::path temp = {};  // empty: "temp" in the output folder
};

class Folders {
 public:
  explicit Folders(FolderLayout layout) : layout_(std::move(layout)) {}
  // `models`: in the order they are searched.
  Folders(const std::vector<std::filesystem::path>& models, std::filesystem::path input,
          std::filesystem::path output)
      : layout_{.models = {}, .input = std::move(input), .output = std::move(output)} {
    for (const std::filesystem::path& path : models) layout_.models.push_back({path});
  }

  // The first place that has the name. Throws not_found with all places searched, and
  // invalid_argument for a name that leaves its folder.
  std::string find(std::string_view folder, std::string_view name) const;

  // What a widget offers: files (relative paths, subfolders included; of models those that end as
  // models do) or the folders right below; sorted, without repetition. Of the folder "": all that
  // lies in places of models, from there on.
  std::vector<std::string> list(std::string_view folder, std::int32_t widget_kind) const;
  std::vector<std::string> places(std::string_view folder) const;

  // Where a new file of a model folder belongs: the first place whose folder is there, else the
  // first. Empty when there is no place.
  std::filesystem::path place_for_new(std::string_view folder) const;

  // "output" or "temp"; made when it is not there. Throws io.
  std::string output(std::string_view kind) const;

 private:
  std::vector<std::filesystem::path> roots(std::string_view folder) const;
  std::filesystem::path temp() const;
  FolderLayout layout_;
};

}  // namespace heddle::engine
