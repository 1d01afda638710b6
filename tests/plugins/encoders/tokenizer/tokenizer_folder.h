// Loads a tokenizer from a folder for tests: files read whole, JSON by RapidJSON. `Route` picks one
// of the file sets when a folder has several. One thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugins/encoders/tokenizer/json_view.h"
#include "plugins/encoders/tokenizer/tokenizer.h"
#include "rapid_json_view.h"

namespace heddle::text {

enum class Route { kTokenizerJson, kSpiece, kVocabMerges };

// "json", "spiece", "vocab". Throws std::runtime_error.
Route route_of(std::string_view name);

// The first of the routes that `folder` has files for. Throws std::runtime_error.
Route only_route(const std::string& folder);

Tokenizer load_folder(const std::string& folder, Route route);

// The same from memory. Malformed JSON is a TextError.
Tokenizer load_tokenizer_json(std::string_view json);
Tokenizer load_clip_files(std::string_view vocabulary_json, std::string_view merges);

// Throws std::runtime_error.
std::string read_file(const std::string& path);

// A file that holds a JSON array of strings or, when it does not start with "[", one string a line.
std::vector<std::string> read_strings(const std::string& path);

}  // namespace heddle::text
