// Where a workflow says that its model files can be had: `properties.models` of nodes, those of
// subgraphs among them, and `models` at the top, as ComfyUI's templates have them. Pure; any
// thread.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"

namespace heddle::engine {

struct ModelAddress {
  std::string name;       // of the file, below the folder: "sub/x.safetensors"
  std::string directory;  // the model folder: "loras"
  std::string url;
  std::string hash, hash_type;  // "c3355d...", "SHA256"; empty: not given
  bool is_of_node = false;      // a node that may load another by now, or that is not run

  // "loras/x.safetensors: https://... (SHA256 c3355d...)"
  std::string text() const;
};

// In the order of the text, each file once. An entry that names no file, or one that would leave
// its folder, is left out.
std::vector<ModelAddress> model_addresses(const Json& workflow);

}  // namespace heddle::engine
