// Shows any value to people. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::loaders {

// Shows a text as it is, any other value as Python or JSON writes it, tensors by type and shape.
struct PreviewAny {
  static constexpr Info info{"PreviewAny",
                             1,
                             "Preview Any",
                             "utils",
                             "Shows a value as text.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Value> source{"source", HEDDLE_PORT_PASS, "The value."};
  static constexpr auto ports = heddle::ports(source);
  static void execute(Context& ctx);
};

}  // namespace heddle::loaders
