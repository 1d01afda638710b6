// Pictures for who follows the run, instead of files. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

// IMAGE (B, H, W, C) f32 with C from 1 to 4, each sent as a PNG file without the workflow in it.
struct SaveImageWebsocket {
  static constexpr Info info{"SaveImageWebsocket",
                             1,
                             "SaveImageWebsocket",
                             "api/image",
                             "Sends pictures to the client that asked for the run.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST | HEDDLE_NODE_IMPURE};
  static constexpr Input<Tensor> images{"images", HEDDLE_PORT_HOST, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(images);
  static void execute(Context& ctx);
};

}  // namespace heddle::image
