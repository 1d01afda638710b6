#include "detection_texts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace heddle::encoders {
namespace {

constexpr std::string_view kThingSpaces = " \t\n\r\v\f";

std::string_view stripped(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kThingSpaces);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kThingSpaces) + 1 - first);
}

// "cat : 2", of which the number is digits and points; else all of it is the thing.
NamedThing thing_of(std::string_view part) {
  const std::size_t digits = part.find_last_not_of("0123456789.");
  const bool has_number = digits != part.npos && digits + 1 < part.size();
  const std::string_view number = has_number ? part.substr(digits + 1) : std::string_view();
  std::string_view name = has_number ? stripped(part.substr(0, digits + 1)) : std::string_view();
  if (name.size() < 2 || name.back() != ':') return {std::string(part)};
  name = stripped(name.substr(0, name.size() - 1));
  if (name.empty()) return {std::string(part)};
  double most = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), most, std::chars_format::fixed);
  if (error != std::errc() || end != number.data() + number.size())
    throw Error(HEDDLE_INVALID_ARGUMENT, "text: '" + std::string(part) + "' asks for '" +
                                             std::string(number) +
                                             "' things, which is no number. Write 'cat:2'.");
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  return {std::string(name), std::int64_t(std::clamp(std::nearbyint(most), 1.0, kMost))};
}

}  // namespace

std::vector<NamedThing> named_things(const std::string& text) {
  std::string plain;
  for (const char c : text)
    if (c != '(' && c != ')') plain += c;
  std::vector<NamedThing> things;
  for (std::size_t at = 0; at <= plain.size();) {
    const std::size_t comma = std::min(plain.find(',', at), plain.size());
    const std::string_view part = stripped(std::string_view(plain).substr(at, comma - at));
    if (!part.empty()) things.push_back(thing_of(part));
    at = comma + 1;
  }
  if (things.size() > 1 || (things.size() == 1 && things.front().most != 1)) return things;
  return {{text}};
}

bool finds_things(const Value& clip) { return clip.get<std::string>("type", "") == "sam3"; }

std::vector<std::pair<std::int64_t, std::int64_t>> token_rows(const TextEncoder& encoder,
                                                              const Prompt& prompt,
                                                              const Context* ctx) {
  const Windows windows = encoder.windows(prompt, ctx);
  std::vector<const Window*> rows;
  for (const Window& row : windows.rows) rows.push_back(&row);
  std::vector<std::pair<std::int64_t, std::int64_t>> kept;
  std::int64_t begin = 0;
  for (const std::int32_t end : encoder.ends(rows)) {
    kept.emplace_back(begin, begin + end + 1);
    begin += windows.length();
  }
  return kept;
}

}  // namespace heddle::encoders
