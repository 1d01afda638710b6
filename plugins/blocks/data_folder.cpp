#include "plugins/blocks/data_folder.h"

#include <algorithm>

namespace heddle::blocks {
namespace {

namespace fs = std::filesystem;

bool ends_with_one(const fs::path& path, std::span<const char* const> endings) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return std::ranges::find(endings, ending) != endings.end();
}

// What is in a folder, by name.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error)
    throw Error(HEDDLE_IO, folder.string() + ": the folder cannot be read: " + error.message() +
                               ". Check its permissions.");
  std::ranges::sort(entries);
  return entries;
}

// How often the files of a folder count.
std::size_t repeats_of(const std::string& name) {
  const std::string number = name.substr(0, name.find('_'));
  const bool is_number =
      !number.empty() && number.size() < 4 && number.find_first_not_of("0123456789") == number.npos;
  return is_number ? std::stoul(number) : 1;
}

}  // namespace

fs::path input_folder(Context& ctx, const std::string& name) {
  heddle_value* path = nullptr;
  check(service<heddle_folders_service>().find(ctx.raw(), "input", name.c_str(), &path));
  return Value::adopt(path).as<std::string>();
}

std::vector<fs::path> data_files(const fs::path& folder, std::span<const char* const> endings) {
  std::vector<fs::path> files = entries_of(folder);
  std::erase_if(files, [&](const fs::path& path) { return !ends_with_one(path, endings); });
  return files;
}

std::vector<fs::path> repeated_data_files(const fs::path& folder,
                                          std::span<const char* const> endings) {
  std::vector<fs::path> files;
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code ignored;
    if (ends_with_one(entry, endings)) {
      files.push_back(entry);
    } else if (fs::is_directory(entry, ignored)) {
      const std::vector<fs::path> inner = data_files(entry, endings);
      for (std::size_t i = 0; i < repeats_of(entry.filename().string()); ++i)
        files.insert(files.end(), inner.begin(), inner.end());
    }
  }
  return files;
}

std::string caption_of(fs::path path) {
  constexpr std::uint64_t kMostText = 1 << 20;
  path.replace_extension(".txt");
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const Value file = read_file(path.string(), kMostText, "a text");
  const std::string_view text = file.text();
  const std::size_t begin = text.find_first_not_of(" \t\r\n\f\v");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n\f\v") - begin + 1));
}

}  // namespace heddle::blocks
