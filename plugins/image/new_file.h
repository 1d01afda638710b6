// Puts a finished file into a folder under a name that nobody has: written under a hidden name
// beside it first, so that no reader ever sees half of it, and given its name without replacing
// another file. When anything fails, nothing is left behind. Any thread, any number of processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace heddle::image {

// Asks `name` for a file name, and again as long as the one it gave is taken. Returns the one that
// the file has now. Throws HEDDLE_IO with the reason of the system.
std::string put_new_file(const std::filesystem::path& folder, std::span<const std::uint8_t> content,
                         const std::function<std::string()>& name);

}  // namespace heddle::image
