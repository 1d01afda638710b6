// The options of a run as its checkpoints keep them, so that `heddle resume` needs no others. Pure.
#pragma once

#include <filesystem>
#include <string>

#include "engine/cli/layer.h"

namespace heddle::cli {

// Of the options that `resume` takes, as text of a configuration file; what belongs to one call of
// the program alone is left out. Paths are made absolute, from the present folder, and so are the
// folders that count where no option names another.
std::string kept_options(const Layer& options);

// `file` names it in messages.
Layer read_kept_options(const std::string& text, const std::filesystem::path& file);

}  // namespace heddle::cli
