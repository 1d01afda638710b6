// Built by clang where there is one, to run beside plugins that g++ built.
#include <heddle/node.hpp>

struct Shout {
  static constexpr heddle::Info info{"demo.shout", 1, "Shout", "demo/text", "Makes a text loud."};
  static constexpr heddle::Input<std::string> text{"text", {.text = ""}};
  static constexpr heddle::Output<std::string> loud{"loud"};
  static constexpr auto ports = heddle::ports(text, loud);
  void execute(heddle::Context& ctx) {
    std::string s = ctx[text];
    for (char& c : s)
      if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    ctx[loud] = s;
  }
};

HEDDLE_PLUGIN("org.example.shout", "1.0.0", Shout)
