// What the tokenizer hands out piece by piece, as lists. Pure.
#pragma once

#include <string>
#include <vector>

#include "plugins/encoders/tokenizer/regex.h"
#include "plugins/encoders/tokenizer/token_windows.h"

namespace heddle::text {

struct Segment {
  std::string text;
  double weight = 1;

  bool operator==(const Segment&) const = default;
};

inline std::vector<Segment> segments_of(std::string_view prompt,
                                        WeightSyntax syntax = WeightSyntax::kParsed) {
  std::vector<Segment> all;
  Work work;
  weighted_segments(prompt, syntax, work, [&](const WeightedText& each) {
    all.push_back({std::string(each.text), each.weight});
  });
  return all;
}

struct WeightedToken {
  std::int32_t id = 0;
  double weight = 1;

  bool operator==(const WeightedToken&) const = default;
};
using TokenWindow = std::vector<WeightedToken>;

inline std::vector<TokenWindow> windows_of(const Tokenizer& tokenizer, std::string_view prompt,
                                           const WindowRules& rules) {
  std::vector<TokenWindow> all;
  Work work;
  token_windows(tokenizer, prompt, rules, WeightSyntax::kParsed, work,
                [&](const WindowToken& token) {
                  if (token.window >= all.size()) all.resize(token.window + 1);
                  all[token.window].push_back({token.id, token.weight});
                });
  return all;
}

inline std::vector<Span> matches_of(const Regex& pattern, std::string_view text) {
  std::vector<Span> all;
  Regex::Matches matches = pattern.matches(text);
  while (const auto match = matches.next()) all.push_back(*match);
  return all;
}

}  // namespace heddle::text
