// Takes the place of demo.hello, when its folder is named.
#include <heddle/node.hpp>

struct Rude {
  static constexpr heddle::Info info{"demo.hello", 2, "Hello", "demo/text", "Does not greet."};
  static constexpr heddle::Input<std::string> name{"name", {.text = "world"}};
  static constexpr heddle::Output<std::string> greeting{"greeting"};
  static constexpr auto ports = heddle::ports(name, greeting);
  void execute(heddle::Context& ctx) { ctx[greeting] = "Go away, " + ctx[name] + "."; }
};

HEDDLE_PLUGIN("org.example.rude", "1.0.0", Rude)
