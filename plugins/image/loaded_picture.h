// Picture files that a workflow names: "cat.png", "cat.png [output]". One call's thread.
#pragma once

#include <heddle/node.hpp>

#include "plugins/image/picture.h"

namespace heddle::image {

// All pictures of the file at a path; pixels are taken from `memory`.
std::vector<Frame> read_frames(const std::string& path, std::pmr::memory_resource& memory);
// Of the file that a workflow names.
std::vector<Frame> load_frames(Context& ctx, const std::string& name,
                               std::pmr::memory_resource& memory);

// Of what the file holds.
std::uint64_t picture_hash(const std::string& path);
std::uint64_t picture_hash(Context& ctx, const std::string& name);

}  // namespace heddle::image
