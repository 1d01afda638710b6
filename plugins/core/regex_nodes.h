// Nodes of regular expressions, with Python's syntax (plugins/core/regex.h). On the host;
// stateless.
#pragma once

#include "value_types.h"

namespace heddle::loaders {

inline constexpr const char* kAdvanced = R"({"advanced": true})";
inline constexpr Widget kOn{.number = 1, .extra = kAdvanced};
inline constexpr Widget kOff{.extra = kAdvanced};
inline constexpr Widget kMaybeOn{.number = 1, .extra = kAdvanced, .flags = HEDDLE_PORT_OPTIONAL};
inline constexpr Widget kMaybeOff{.extra = kAdvanced, .flags = HEDDLE_PORT_OPTIONAL};

struct RegexMatch {
  static constexpr Info info{
      "RegexMatch", 1, "Match Text", "text", "Whether the pattern is found in the text.",
      kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Input<std::string> regex_pattern{"regex_pattern", kLongText};
  static constexpr Input<bool> case_insensitive{"case_insensitive", kOn};
  static constexpr Input<bool> multiline{"multiline", kOff};
  static constexpr Input<bool> dotall{"dotall", kOff};
  static constexpr Output<bool> matches{"matches"};
  static constexpr auto ports =
      heddle::ports(string, regex_pattern, case_insensitive, multiline, dotall, matches);
  static void execute(Context& ctx);
};

struct RegexExtract {
  static constexpr const char* kModes[] = {"First Match", "All Matches", "First Group",
                                           "All Groups", nullptr};
  static constexpr Widget kGroup{.number = 1, .max = 100, .extra = kAdvanced};

  static constexpr Info info{
      "RegexExtract", 1, "Extract Text", "text", "What the pattern finds in the text, a line each.",
      kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Input<std::string> regex_pattern{"regex_pattern", kLongText};
  static constexpr Input<Choice> mode{"mode", Widget{.choices = kModes}};
  static constexpr Input<bool> case_insensitive{"case_insensitive", kOn};
  static constexpr Input<bool> multiline{"multiline", kOff};
  static constexpr Input<bool> dotall{"dotall", kOff};
  static constexpr Input<std::int64_t> group_index{"group_index", kGroup};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(string, regex_pattern, mode, case_insensitive,
                                              multiline, dotall, group_index, out);
  static void execute(Context& ctx);
};

struct RegexReplace {
  static constexpr Widget kCount{.max = 100, .extra = kAdvanced, .flags = HEDDLE_PORT_OPTIONAL};

  static constexpr Info info{"RegexReplace",
                             1,
                             "Replace Text (Regex)",
                             "text",
                             "The text with what the pattern finds replaced; count 0: all of it.",
                             kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Input<std::string> regex_pattern{"regex_pattern", kLongText};
  static constexpr Input<std::string> replace{"replace", kLongText};
  static constexpr Input<bool> case_insensitive{"case_insensitive", kMaybeOn};
  static constexpr Input<bool> multiline{"multiline", kMaybeOff};
  static constexpr Input<bool> dotall{"dotall", kMaybeOff};
  static constexpr Input<std::int64_t> count{"count", kCount};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(string, regex_pattern, replace, case_insensitive,
                                              multiline, dotall, count, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
