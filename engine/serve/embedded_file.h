// A file that is part of the program: engine/serve/embed_files.cmake makes them. Plain values that
// last as long as the program.
#pragma once

#include <span>
#include <string_view>

namespace heddle::engine {

struct EmbeddedFile {
  std::string_view name;  // "index.html"
  std::string_view etag;  // in its quotes, as the header wants it
  std::string_view content;
};

// The page of our own: engine/serve/page.
std::span<const EmbeddedFile> page_files();

}  // namespace heddle::engine
