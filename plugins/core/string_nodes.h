// Nodes that make texts of texts. Positions and lengths are in characters, as in Python. On the
// host; stateless.
#pragma once

#include "value_types.h"

namespace heddle::loaders {

inline constexpr Widget kNumberOfText{.extra = kNoDefault};
inline constexpr Widget kCaseSensitive{.number = 1, .extra = R"({"advanced": true})"};

struct StringConcatenate {
  static constexpr Widget kDelimiter{.extra = R"({"default": "", "multiline": false})"};

  static constexpr Info info{"StringConcatenate", 1,  "Concatenate",
                             "utils/string",      "", kOfLiterals};
  static constexpr Input<std::string> string_a{"string_a", kLongText};
  static constexpr Input<std::string> string_b{"string_b", kLongText};
  static constexpr Input<std::string> delimiter{"delimiter", kDelimiter};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(string_a, string_b, delimiter, out);
  static void execute(Context& ctx);
};

struct StringSubstring {
  static constexpr Info info{"StringSubstring", 1, "Substring", "utils/string", "", kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Input<std::int64_t> start{"start", kNumberOfText};
  static constexpr Input<std::int64_t> end{"end", kNumberOfText};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(string, start, end, out);
  static void execute(Context& ctx);
};

struct StringLength {
  static constexpr Info info{"StringLength", 1, "Length", "utils/string", "", kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Output<std::int64_t> length{"length"};
  static constexpr auto ports = heddle::ports(string, length);
  static void execute(Context& ctx);
};

struct CaseConverter {
  static constexpr const char* kModes[] = {"UPPERCASE", "lowercase", "Capitalize", "Title Case",
                                           nullptr};

  static constexpr Info info{"CaseConverter", 1, "Case Converter", "utils/string", "", kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Input<Choice> mode{"mode", Widget{.choices = kModes}};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(string, mode, out);
  static void execute(Context& ctx);
};

struct StringTrim {
  static constexpr const char* kModes[] = {"Both", "Left", "Right", nullptr};

  static constexpr Info info{"StringTrim", 1, "Trim", "utils/string", "", kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Input<Choice> mode{"mode", Widget{.choices = kModes}};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(string, mode, out);
  static void execute(Context& ctx);
};

struct StringReplace {
  static constexpr Info info{"StringReplace", 1, "Replace", "utils/string", "", kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Input<std::string> find{"find", kLongText};
  static constexpr Input<std::string> replace{"replace", kLongText};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(string, find, replace, out);
  static void execute(Context& ctx);
};

struct StringContains {
  static constexpr Info info{"StringContains", 1, "Contains Text", "text", "", kOfLiterals};
  static constexpr Input<std::string> string{"string", kLongText};
  static constexpr Input<std::string> substring{"substring", kLongText};
  static constexpr Input<bool> case_sensitive{"case_sensitive", kCaseSensitive};
  static constexpr Output<bool> contains{"contains"};
  static constexpr auto ports = heddle::ports(string, substring, case_sensitive, contains);
  static void execute(Context& ctx);
};

struct StringCompare {
  static constexpr const char* kModes[] = {"Starts With", "Ends With", "Equal", nullptr};

  static constexpr Info info{"StringCompare", 1, "Compare Text", "text", "", kOfLiterals};
  static constexpr Input<std::string> string_a{"string_a", kLongText};
  static constexpr Input<std::string> string_b{"string_b", kLongText};
  static constexpr Input<Choice> mode{"mode", Widget{.choices = kModes}};
  static constexpr Input<bool> case_sensitive{"case_sensitive", kCaseSensitive};
  static constexpr Output<bool> out{"BOOLEAN"};
  static constexpr auto ports = heddle::ports(string_a, string_b, mode, case_sensitive, out);
  static void execute(Context& ctx);
};

struct JsonExtractString {
  static constexpr Info info{"JsonExtractString", 1, "Extract Text from JSON", "text", "",
                             kOfLiterals};
  static constexpr Input<std::string> json_string{"json_string", kLongText};
  static constexpr Input<std::string> key{"key", kShortText};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(json_string, key, out);
  static void execute(Context& ctx);
};

struct StringFormat {
  static constexpr Widget kValues{
      .extra = R"({"template": {"input": {"required": {"value": ["*", {}]}},
                   "names": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
                             "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z"],
                   "min": 0}})",
      .flags = HEDDLE_PORT_PASS};
  static constexpr Widget kFormat{.text = "{a}", .extra = kManyLines};

  static constexpr Info info{
      "StringFormat",
      1,
      "Format Text",
      "text",
      "Python's str.format(): \"{a}\" stands for the value a, \"{b:>8.2f}\" for b in a format.",
      kOfLiterals | HEDDLE_NODE_ANY_INPUT};
  static constexpr Input<Growing> values{"values", kValues};
  static constexpr Input<std::string> f_string{"f_string", kFormat};
  static constexpr Output<std::string> out{"STRING"};
  static constexpr auto ports = heddle::ports(values, f_string, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
