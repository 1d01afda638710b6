#include "engine/serve/url.h"

#include <algorithm>
#include <cctype>

namespace heddle::engine {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded_or_whole(std::string_view text) {
  return percent_decoded(text, true).value_or(std::string(text));
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return {};
      const int high = digit(text[i + 1]), low = digit(text[i + 2]);
      if (high < 0 || low < 0) return {};
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (c == '\0') return {};
    decoded += c;
  }
  return decoded;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF", kKept = "-._~";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_word || kKept.find(c) != kKept.npos)
      encoded += c;
    else
      encoded += {'%', kDigits[byte / 16], kDigits[byte % 16]};
  }
  return encoded;
}

Query::Query(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    parts_.emplace_back(decoded_or_whole(part.substr(0, equals)),
                        equals < part.size() ? decoded_or_whole(part.substr(equals + 1)) : "");
  }
}

const std::string* Query::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(parts_, [&](const auto& part) { return part.first == name; });
  return found == parts_.end() ? nullptr : &found->second;
}

std::string Query::get(std::string_view name, std::string_view otherwise) const {
  const std::string* value = find(name);
  return value == nullptr ? std::string(otherwise) : *value;
}

bool Query::is_true(std::string_view name, bool otherwise) const {
  const std::string* value = find(name);
  if (value == nullptr) return otherwise;
  std::string low = *value;
  std::ranges::transform(low, low.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return low == "true" || low == "1";
}

std::vector<std::string_view> path_segments(std::string_view path) {
  std::vector<std::string_view> segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == path.npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace heddle::engine
