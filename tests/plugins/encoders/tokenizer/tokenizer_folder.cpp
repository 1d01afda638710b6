#include "tokenizer_folder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "plugins/encoders/tokenizer/spiece.h"
#include "plugins/encoders/tokenizer/tokenizer_config.h"
#include "plugins/encoders/tokenizer/tokenizer_json.h"
#include "plugins/encoders/tokenizer/vocab_merges.h"

namespace heddle::text {

Route only_route(const std::string& folder) {
  const auto has = [&](const char* name) { return std::filesystem::exists(folder + "/" + name); };
  if (has("tokenizer.json")) return Route::kTokenizerJson;
  if (has("spiece.model")) return Route::kSpiece;
  if (has("vocab.json") && has("merges.txt")) return Route::kVocabMerges;
  throw std::runtime_error(
      folder +
      ": has no tokenizer.json, no spiece.model, and not both of vocab.json and merges.txt");
}

Route route_of(std::string_view name) {
  if (name == "json") return Route::kTokenizerJson;
  if (name == "spiece") return Route::kSpiece;
  if (name == "vocab") return Route::kVocabMerges;
  throw std::runtime_error("route '" + std::string(name) + "' is not json, spiece or vocab");
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Tokenizer load_tokenizer_json(std::string_view json) {
  return with_json(json, [](JsonView root) { return read_tokenizer_json(root, "tokenizer.json"); });
}

Tokenizer load_clip_files(std::string_view vocabulary_json, std::string_view merges) {
  return with_json(vocabulary_json, [&](JsonView root) {
    return read_clip_files(root, "vocab.json", merges, "merges.txt", ClipTokens{});
  });
}

Tokenizer load_folder(const std::string& folder, Route route) {
  if (route == Route::kTokenizerJson)
    return load_tokenizer_json(read_file(folder + "/tokenizer.json"));
  if (route == Route::kSpiece)
    return read_spiece(read_file(folder + "/spiece.model"), "spiece.model");
  ClipTokens tokens;
  const std::string config = folder + "/tokenizer_config.json";
  if (std::filesystem::exists(config)) {
    tokens = with_json(read_file(config), [](JsonView root) {
      return read_tokenizer_config(root, "tokenizer_config.json").clip_tokens();
    });
  }
  const std::string merges = read_file(folder + "/merges.txt");
  return with_json(read_file(folder + "/vocab.json"), [&](JsonView root) {
    return read_clip_files(root, "vocab.json", merges, "merges.txt", tokens);
  });
}

std::vector<std::string> read_strings(const std::string& path) {
  const std::string file = read_file(path);
  std::vector<std::string> strings;
  if (!file.starts_with('[')) {
    std::istringstream lines(file);
    for (std::string line; std::getline(lines, line);) strings.push_back(line);
    return strings;
  }
  return with_json(file, [&](JsonView root) {
    for (std::size_t i = 0; i < root.size(); ++i) strings.emplace_back(root.item(i).as_string());
    return strings;
  });
}

}  // namespace heddle::text
