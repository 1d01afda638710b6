// Finding and reading the files that loaders take: places, JSON, and what tells whether they have
// changed. Any thread; a Context belongs to one call.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::loaders {

// Where files of a folder are looked for: a list of texts.
Value places_of(Context& ctx, const char* folder);

// The path of a name in a model folder ("vae"); fails with the places that were searched.
std::filesystem::path find_file(Context& ctx, const char* folder, const std::string& name);
// The same, absent when it is nowhere.
std::optional<std::filesystem::path> try_find(Context& ctx, const char* folder,
                                              const std::string& name);

// A JSON file as a value; the second form gives none when there is no such file. Errors name file,
// line and column.
Value read_json(const std::filesystem::path& path);
Value read_json_if_there(const std::filesystem::path& path);

// Changes when a file, or a file below a folder, is replaced. Of paths only what stands below what
// was given counts, as the service tells files apart.
std::uint64_t fingerprint_of(Context& ctx, const std::vector<std::filesystem::path>& paths);
// Of the file that an input names, in the folder that its widget says; 0 of one that is linked,
// which is known by what it comes from.
std::uint64_t fingerprint_of_file(Context& ctx, const Input<std::string>& name);

}  // namespace heddle::loaders
