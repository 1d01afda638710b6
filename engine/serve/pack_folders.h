// What Python packs of ComfyUI bring for its front end: scripts, and workflows as templates. Their
// nodes are Python, which stays unread but for the one line that names the folder of the scripts.
// Looks at the disk at every call; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"

namespace heddle::engine {

class PackFolders {
 public:
  // `folder`: that has a folder for each pack, as custom_nodes; empty: there are none.
  explicit PackFolders(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // "/extensions/PACK/a.js", sorted.
  std::vector<std::string> scripts() const;
  // {"PACK": ["name", ...]}: workflows without their endings.
  Json templates() const;
  // What is at /extensions/PACK/NAME, and at /workflow_templates/PACK/NAME; nothing: no such file
  // may be sent.
  std::optional<std::filesystem::path> script_file(std::string_view pack,
                                                   std::string_view name) const;
  std::optional<std::filesystem::path> template_file(std::string_view pack,
                                                     std::string_view name) const;

 private:
  std::vector<std::filesystem::path> packs() const;
  std::optional<std::filesystem::path> pack_named(std::string_view name) const;

  const std::filesystem::path folder_;
};

}  // namespace heddle::engine
