// The folders that `heddle new` writes: sdk/templates, as parts of the program. A file's name
// begins with its kind: "node/CMakeLists.txt". Constant data; any thread.
#pragma once

#include <span>

#include "engine/serve/embedded_file.h"

namespace heddle::engine {

std::span<const EmbeddedFile> template_files();

}  // namespace heddle::engine
