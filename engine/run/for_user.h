// What a node makes for the user besides its outputs: files, and what it shows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"

namespace heddle::engine {

struct ForUser {
  std::vector<std::string> files;
  Json ui;  // an object of lists, as ComfyUI's history has it; null: the node shows nothing
};

// Throws invalid_argument for what is no object of lists.
Json parse_ui(std::string_view text);

// Lists of one name are joined, in the order in which they come.
void join_ui(Json& all, const Json& part);

}  // namespace heddle::engine
