// heddle/model_files.hpp - the model files that a workflow gives addresses for: where they can be
// had, and where they belong. Nothing is downloaded here; `heddle fetch` does that. Link with
// libheddle.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/engine.hpp"

namespace heddle {

struct ModelFile {
  std::string directory, name;  // "loras", "sub/x.safetensors"
  std::string url;              // as the workflow has it; may be empty
  std::string hash, hash_type;  // "c3355d...", "SHA256"; empty: not given
  std::filesystem::path path;   // where it is, or where it belongs
  bool is_there = false;
};

// Those of `properties.models` of nodes, of nodes in subgraphs, and of `models` at the top, each
// once. The workflow may be one that cannot run here; `file` is how errors call it. Of the options,
// those of folders count. Any thread. Throws EngineError for what is no JSON, and for a ComfyUI
// folder that is none.
std::vector<ModelFile> model_files(std::string_view workflow, std::string_view file,
                                   const EngineOptions& options);

}  // namespace heddle
