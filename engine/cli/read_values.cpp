#include "engine/cli/read_values.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::cli {

using engine::cat;
using engine::Code;
using engine::Error;
using engine::quote;

[[noreturn]] void refuse(const Given& given, std::string_view what) {
  throw Error(Code::invalid_argument, cat(given.where, ": ", what));
}

bool read_flag(const Layer& layer, std::string_view option) {
  for (const Given& given : layer.of(option)) {
    for (const std::string_view yes : {"true", "1", "yes", "on"})
      if (given.text == yes) return true;
    for (const std::string_view no : {"false", "0", "no", "off"})
      if (given.text == no) return false;
    refuse(given, cat("expected true or false, got ", quote(given.text), "."));
  }
  return false;
}

unsigned read_number(const Given& given, unsigned most, std::string_view what) {
  unsigned number = 0;
  const char* end = given.text.data() + given.text.size();
  const auto read = std::from_chars(given.text.data(), end, number);
  if (given.text.empty() || read.ec != std::errc() || read.ptr != end || number > most)
    refuse(given, cat("expected ", what, ", got ", quote(given.text), "."));
  return number;
}

std::vector<std::string> separate(const Given& given) {
  std::vector<std::string> words;
  std::string_view rest = given.text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (word.empty())
      refuse(given, cat("expected names with commas between, got ", quote(given.text), "."));
    words.emplace_back(word);
    if (comma == std::string_view::npos) return words;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<std::string> read_words(const Layer& layer, std::string_view option) {
  std::vector<std::string> words;
  for (const Given& given : layer.of(option))
    std::ranges::move(separate(given), std::back_inserter(words));
  return words;
}

std::filesystem::path read_path(const Given& given) {
  if (given.text.empty()) refuse(given, "expected a path, got an empty one.");
  return given.text;
}

std::filesystem::path read_new_file(const Given& given) {
  const std::filesystem::path path = read_path(given);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    refuse(given, cat("there is no folder ", quote(folder.string()), " to write the file into."));
  if (std::filesystem::is_directory(path, ignored))
    refuse(given, cat(quote(path.string()), " is a folder; name a file in it."));
  return path;
}

}  // namespace heddle::cli
