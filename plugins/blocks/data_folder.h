// Folders of data sets below the input folder: their files, and the texts beside them. One call's
// thread; errors name the folder.
#pragma once

#include <filesystem>
#include <heddle/node.hpp>
#include <span>
#include <string>
#include <vector>

namespace heddle::blocks {

// The folder of that name below the input folder.
std::filesystem::path input_folder(Context& ctx, const std::string& name);

// What has one of these endings (".png"; of any case), by name.
std::vector<std::filesystem::path> data_files(const std::filesystem::path& folder,
                                              std::span<const char* const> endings);

// The same, and those of the folders in it; the ones of "3_cats" three times.
std::vector<std::filesystem::path> repeated_data_files(const std::filesystem::path& folder,
                                                       std::span<const char* const> endings);

// The text of the same name, without white space at its ends; empty without one.
std::string caption_of(std::filesystem::path path);

}  // namespace heddle::blocks
