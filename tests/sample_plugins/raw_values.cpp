// Any value out of a text, for tests of what reaches a node through a link: "i:-5",
// "u:18446744073709551615", "f:nan", "s:text". Of the type "*", so that it may be linked to every
// input.
#include <cstdlib>

#include <heddle/node.hpp>

namespace {

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Value;
using heddle::value_of;

Value parsed(const std::string& text) {
  const char* number = text.c_str() + 2;
  switch (text.size() < 2 ? ' ' : text[0]) {
    case 'i':
      return value_of(std::int64_t{std::strtoll(number, nullptr, 10)});
    case 'u':
      return value_of(std::uint64_t{std::strtoull(number, nullptr, 10)});
    case 'f':
      return value_of(std::strtod(number, nullptr));
    case 's':
      return value_of(number);
    default:
      throw heddle::Error(HEDDLE_INVALID_ARGUMENT, "there is no value in '" + text + "'");
  }
}

// Known when it has run, and not before.
struct Raw {
  static constexpr heddle::Info info{"test.raw", 1, "Raw", "test", "", HEDDLE_NODE_HOST};
  static constexpr Input<std::string> text{"text", {}};
  static constexpr Output<Value> out{"out", 0, "", "*"};
  static constexpr auto ports = heddle::ports(text, out);
  void execute(Context& ctx) { ctx[out] = parsed(ctx[text]); }
};

// The same, known when plans are made.
struct Known : Raw {
  static constexpr heddle::Info info{"test.known", 1,  "Known",
                                     "test",       "", HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
};

}  // namespace

HEDDLE_PLUGIN("org.heddle.tests.raw_values", "1.0.0", Raw, Known)
