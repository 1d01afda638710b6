// Nodes that change the texts of a data set. They take one text; for a list of texts the engine
// calls them once for each. On the host; stateless.
#pragma once

#include "value_types.h"

namespace heddle::loaders {

inline constexpr Widget kPieceOfText{.extra = R"({"default": "", "multiline": false})"};
inline constexpr std::uint32_t kTrial = kOfLiterals | HEDDLE_NODE_EXPERIMENTAL,
                               kReplaced = kTrial | HEDDLE_NODE_DEPRECATED;

struct AddTextPrefix {
  static constexpr Info info{"AddTextPrefix", 1,  "Add Text Prefix (DEPRECATED)",
                             "text",          "", kReplaced};
  static constexpr Input<std::string> texts{"texts", kShortText};
  static constexpr Input<std::string> prefix{"prefix", kPieceOfText};
  static constexpr Output<std::string> out{"texts"};
  static constexpr auto ports = heddle::ports(texts, prefix, out);
  static void execute(Context& ctx) { ctx[out] = ctx[prefix] + ctx[texts]; }
};

struct AddTextSuffix {
  static constexpr Info info{"AddTextSuffix", 1,  "Add Text Suffix (DEPRECATED)",
                             "text",          "", kReplaced};
  static constexpr Input<std::string> texts{"texts", kShortText};
  static constexpr Input<std::string> suffix{"suffix", kPieceOfText};
  static constexpr Output<std::string> out{"texts"};
  static constexpr auto ports = heddle::ports(texts, suffix, out);
  static void execute(Context& ctx) { ctx[out] = ctx[texts] + ctx[suffix]; }
};

struct ReplaceText {
  static constexpr Info info{"ReplaceText", 1, "Replace Text (DEPRECATED)", "text", "", kReplaced};
  static constexpr Input<std::string> texts{"texts", kShortText};
  static constexpr Input<std::string> find{"find", kPieceOfText};
  static constexpr Input<std::string> replace{"replace", kPieceOfText};
  static constexpr Output<std::string> out{"texts"};
  static constexpr auto ports = heddle::ports(texts, find, replace, out);
  static void execute(Context& ctx);
};

struct StripWhitespace {
  static constexpr Info info{"StripWhitespace", 1, "Strip Whitespace (DEPRECATED)", "text", "",
                             kReplaced};
  static constexpr Input<std::string> texts{"texts", kShortText};
  static constexpr Output<std::string> out{"texts"};
  static constexpr auto ports = heddle::ports(texts, out);
  static void execute(Context& ctx);
};

struct TextToLowercase {
  static constexpr Info info{
      "TextToLowercase", 1, "Convert Text to Lowercase (DEPRECATED)", "text", "", kReplaced};
  static constexpr Input<std::string> texts{"texts", kShortText};
  static constexpr Output<std::string> out{"texts"};
  static constexpr auto ports = heddle::ports(texts, out);
  static void execute(Context& ctx);
};

struct TextToUppercase {
  static constexpr Info info{
      "TextToUppercase", 1, "Convert Text to Uppercase (DEPRECATED)", "text", "", kReplaced};
  static constexpr Input<std::string> texts{"texts", kShortText};
  static constexpr Output<std::string> out{"texts"};
  static constexpr auto ports = heddle::ports(texts, out);
  static void execute(Context& ctx);
};

struct TruncateText {
  static constexpr Info info{"TruncateText", 1, "Truncate Text", "text", "", kTrial};
  static constexpr Input<std::string> texts{"texts", kShortText};
  static constexpr Input<std::int64_t> max_length{"max_length",
                                                  Widget{.number = 77, .min = 1, .max = 10000}};
  static constexpr Output<std::string> out{"texts"};
  static constexpr auto ports = heddle::ports(texts, max_length, out);
  static void execute(Context& ctx);
};

// The list is one value, not one that its readers are called for item by item.
struct MergeTextLists {
  static constexpr Widget kTexts{.extra = kOneLine, .flags = HEDDLE_PORT_LIST, .type = "STRING"};

  static constexpr Info info{"MergeTextLists", 1,  "Merge Text Lists (DEPRECATED)",
                             "text",           "", kReplaced};
  static constexpr Input<Value> texts{"texts", kTexts};
  static constexpr Output<Value> out{"texts", 0, "", "STRING"};
  static constexpr auto ports = heddle::ports(texts, out);
  static void execute(Context& ctx) { ctx[out] = ctx[texts]; }
};

}  // namespace heddle::loaders
