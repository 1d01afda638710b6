// Drawings by Graphviz, which is a program of its own and need not be there.
#pragma once

#include <filesystem>
#include <string>

namespace heddle::cli {

// Writes the drawing, given in the language of Graphviz, to `file` as SVG; where the name ends in
// .dot, as it is; as engine::write_file() writes. Throws engine::Error: unsupported when there
// is no `dot`, internal when it refuses its input, else the system's error with the path.
void draw(const std::string& dot_source, const std::filesystem::path& file);

}  // namespace heddle::cli
