#include "plugins/blocks/file_names.h"

#include <algorithm>
#include <charconv>
#include <heddle/plugin.hpp>

namespace heddle::blocks {
namespace {

namespace fs = std::filesystem;

std::string padded(std::int64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Runs of one or two of d M h m s, and yy, yyy, yyyy, in a pattern such as "yyyy-MM-dd_hhmmss"; a
// run of one letter is not padded.
std::string date_text(std::string_view pattern, const std::tm& now) {
  const auto number_of = [&](char letter) -> int {
    switch (letter) {
      case 'd':
        return now.tm_mday;
      case 'M':
        return now.tm_mon + 1;
      case 'h':
        return now.tm_hour;
      case 'm':
        return now.tm_min;
      case 's':
        return now.tm_sec;
      default:
        return -1;
    }
  };
  std::string text;
  for (std::size_t at = 0; at < pattern.size();) {
    const char letter = pattern[at];
    const std::size_t most = letter == 'y' ? 4 : 2;
    std::size_t run = 1;
    while (run < most && at + run < pattern.size() && pattern[at + run] == letter) ++run;
    if (const int number = number_of(letter); number >= 0) {
      text += padded(number, run);
    } else if (letter == 'y' && run >= 2) {
      const std::string year = padded(now.tm_year + 1900, 4);
      text += run == 2 ? year.substr(2) : run == 4 ? year : "yyy";
    } else {
      text.append(pattern.substr(at, run));
    }
    at += run;
  }
  return text;
}

// Bytes of the control character at the begin of UTF-8, 0 when there is none: C0, DEL, C1, line and
// paragraph separators, and what turns the direction of text.
std::size_t control_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  const bool separates = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return byte(0) == 0xe2 && (separates || isolates) ? 3 : 0;
}

// Names end in lists of files and on terminals, where such characters are commands.
std::string without_controls(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t control = control_length(text);
    if (control > 0)
      result += '_';
    else
      result += text.front();
    text.remove_prefix(std::max<std::size_t>(control, 1));
  }
  return result;
}

// A widget's text may not make folders or name what a file system refuses.
std::string as_file_name(std::string text) {
  constexpr std::string_view kRefused = "/?<>\\:*|\"";
  for (char& c : text)
    if (kRefused.find(c) != std::string_view::npos) c = '_';
  return without_controls(text);
}

// What stands between two percent signs, or nothing when it is not one of the browser's.
std::optional<std::string> replacement(std::string_view inside, const PrefixFacts& facts) {
  const std::size_t dot = inside.find('.');
  const bool has_two_parts =
      dot != std::string_view::npos && inside.find('.', dot + 1) == std::string_view::npos;
  if (has_two_parts) {
    if (!facts.widget) return std::nullopt;
    std::optional<std::string> text = facts.widget(inside.substr(0, dot), inside.substr(dot + 1));
    if (text) text = as_file_name(std::move(*text));
    return text;
  }
  constexpr std::string_view kDate = "date:";
  if (!inside.starts_with(kDate)) return std::nullopt;
  return date_text(inside.substr(kDate.size()), facts.now);
}

std::string expand_browser_patterns(std::string_view prefix, const PrefixFacts& facts) {
  std::string result;
  while (true) {
    const std::size_t open = prefix.find('%');
    const std::size_t close = open == std::string_view::npos ? open : prefix.find('%', open + 1);
    if (close == std::string_view::npos) return result.append(prefix);
    if (close == open + 1) {  // nothing between them: the second one may open a pattern
      result.append(prefix.substr(0, close));
      prefix.remove_prefix(close);
      continue;
    }
    const auto text = replacement(prefix.substr(open + 1, close - open - 1), facts);
    result.append(prefix.substr(0, open));
    result.append(text ? std::string_view(*text) : prefix.substr(open, close - open + 1));
    prefix.remove_prefix(close + 1);
  }
}

[[noreturn]] void refuse_escape(const std::string& prefix, const fs::path& root,
                                const std::string& how) {
  throw Error(HEDDLE_INVALID_ARGUMENT, "filename_prefix '" + prefix +
                                           "' leaves the output folder " + root.string() + ": " +
                                           how + ". Give a name below the output folder.");
}

bool is_below(const fs::path& path, const fs::path& root) {
  const auto [at_root, at_path] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return at_root == root.end() || (at_root->empty() && std::next(at_root) == root.end());
}

// The digits between the stem's underscore and the next one or a dot, or 0.
std::uint64_t number_in(std::string_view name, std::string_view stem) {
  if (name.size() <= stem.size() || !name.starts_with(stem) || name[stem.size()] != '_') return 0;
  name.remove_prefix(stem.size() + 1);
  name = name.substr(0, name.find_first_of("_."));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  constexpr std::uint64_t kGreatest = 999'999'999'999;  // beyond it is no counter of ours
  return is_number && number < kGreatest ? number : 0;
}

}  // namespace

std::string expand_prefix(std::string_view prefix, const PrefixFacts& facts) {
  std::string text = expand_browser_patterns(prefix, facts);
  const std::tm& now = facts.now;
  replace_all(text, "%width%", std::to_string(facts.width));
  replace_all(text, "%height%", std::to_string(facts.height));
  replace_all(text, "%year%", std::to_string(now.tm_year + 1900));
  replace_all(text, "%month%", padded(now.tm_mon + 1, 2));
  replace_all(text, "%day%", padded(now.tm_mday, 2));
  replace_all(text, "%hour%", padded(now.tm_hour, 2));
  replace_all(text, "%minute%", padded(now.tm_min, 2));
  replace_all(text, "%second%", padded(now.tm_sec, 2));
  return text;
}

Place find_place(const fs::path& root, const std::string& given) {
  if (given.find('\0') != std::string::npos)
    throw Error(HEDDLE_INVALID_ARGUMENT, "filename_prefix holds a zero byte. Remove it.");
  const std::string prefix = without_controls(given);
  fs::path path = fs::path(prefix).lexically_normal();
  if (path.is_absolute()) refuse_escape(prefix, root, "it is an absolute path");
  if (path.has_relative_path() && !path.has_filename())
    path = path.parent_path();  // "a/" names "a"
  if (path.begin() != path.end() && *path.begin() == "..")
    refuse_escape(prefix, root, "it goes up with '..'");
  if (path.empty()) path = ".";  // as Python's normpath has it

  Place place{root / path.parent_path(), path.parent_path().generic_string(),
              path.filename().string()};
  std::error_code error;
  const fs::path real_root = fs::weakly_canonical(root, error);
  const fs::path real_folder = error ? fs::path() : fs::weakly_canonical(place.folder, error);
  if (!error && !is_below(real_folder, real_root))
    refuse_escape(prefix, root, "a link leads to " + real_folder.string());
  if (!error) fs::create_directories(place.folder, error);
  if (error)
    throw Error(HEDDLE_IO, "filename_prefix '" + prefix + "': the folder " + place.folder.string() +
                               " cannot be made: " + error.message() +
                               ". Check its permissions and the free space.");
  return place;
}

std::uint64_t next_counter(const Place& place) {
  std::uint64_t greatest = 0;
  std::error_code error;
  for (fs::directory_iterator it(place.folder, error), end; !error && it != end;
       it.increment(error))
    greatest = std::max(greatest, number_in(it->path().filename().string(), place.stem));
  if (error)
    throw Error(HEDDLE_IO, "the folder " + place.folder.string() +
                               " cannot be read: " + error.message() + ". Check its permissions.");
  return greatest + 1;
}

std::string file_name(const std::string& stem, std::size_t batch_number, std::uint64_t counter,
                      const std::string& ending) {
  std::string name = stem;
  replace_all(name, "%batch_num%", std::to_string(batch_number));
  return name + "_" + padded(static_cast<std::int64_t>(counter), 5) + ending;
}

}  // namespace heddle::blocks
