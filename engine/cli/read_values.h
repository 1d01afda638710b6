// What is given for options, read as what it has to be. All of these throw an Error that says where
// it was given, what, and what is expected.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cli/layer.h"

namespace heddle::cli {

[[noreturn]] void refuse(const Given& given, std::string_view what);

// False where the option is not given.
bool read_flag(const Layer& layer, std::string_view option);
// From 0 to `most`. `what` is expected: "a port from 0 to 65535".
unsigned read_number(const Given& given, unsigned most, std::string_view what);
// "a,b" -> {"a", "b"}.
std::vector<std::string> separate(const Given& given);
// Those of every time that the option is given.
std::vector<std::string> read_words(const Layer& layer, std::string_view option);
std::filesystem::path read_path(const Given& given);
// Of a file that will be written in the end: by then it is too late to learn that it has no folder.
std::filesystem::path read_new_file(const Given& given);

}  // namespace heddle::cli
