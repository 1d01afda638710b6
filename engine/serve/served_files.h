// Files that a server gives away and takes: none of them lies outside of its folder, whatever its
// name says or leads to. Any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/serve/http_message.h"

namespace heddle::engine {

// "cat.png [output]": the folder that a name says of itself, and the name without it.
struct TaggedName {
  std::string name, folder;  // folder: "" where it says none
};
TaggedName tagged_name(std::string_view name);

// A name of files below a folder: relative, without "..", control characters and backslashes.
bool is_safe_name(std::string_view name);

// `name` below `root` as the system finds it; nothing where that lies elsewhere. The last parts
// need not be there.
std::optional<std::filesystem::path> inside(const std::filesystem::path& root,
                                            const std::filesystem::path& name);

// By the ending of the name; "application/octet-stream" for what is unknown.
std::string_view content_type(const std::filesystem::path& file);

// The file, or the part of it that the request's Range asks for. Nothing where there is no such
// file: a folder, a device, a pipe.
std::optional<HttpResponse> file_response(const HttpRequest& request,
                                          const std::filesystem::path& file);

}  // namespace heddle::engine
