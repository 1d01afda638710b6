// Shows any value to people. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::loaders {

// Shows a text as it is, any other value as Python or JSON writes it, tensors by type and shape.
struct PreviewAny {
  static constexpr Info info{"PreviewAny",
                             2,
                             "Preview as Text",
                             "utilities",
                             "Shows a value as text.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Value> source{"source", HEDDLE_PORT_PASS, "The value."};
  static constexpr Output<std::string> text{"STRING"};
  static constexpr auto ports = heddle::ports(source, text);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
