// Where files are: model folders laid out as people have them (checkpoints/, diffusion_models/,
// ...), an input folder, an output folder. Names come from workflows and may not leave their
// folder. Immutable; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::engine {

class Folders {
 public:
  // `models`: in the order they are searched.
  Folders(std::vector<std::filesystem::path> models, std::filesystem::path input,
          std::filesystem::path output);

  // The first place that has the name. Throws not_found with all places searched, and
  // invalid_argument for a name that leaves its folder.
  std::string find(std::string_view folder, std::string_view name) const;

  // What a widget offers: files (relative paths, subfolders included) or the folders right below;
  // sorted, without repetition.
  std::vector<std::string> list(std::string_view folder, std::int32_t widget_kind) const;
  std::vector<std::string> places(std::string_view folder) const;

  // "output" or "temp"; made when it is not there. Throws io.
  std::string output(std::string_view kind) const;

 private:
  std::vector<std::filesystem::path> roots(std::string_view folder) const;
  std::vector<std::filesystem::path> models_;
  std::filesystem::path input_, output_;
};

}  // namespace heddle::engine
