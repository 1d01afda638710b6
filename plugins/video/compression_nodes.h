// LTXVPreprocess: pictures as a compressed video shows them. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::video {

struct LTXVPreprocess {
  static constexpr Widget kCompression{.number = 35, .max = 100};

  static constexpr Info info{"LTXVPreprocess",
                             1,
                             "",
                             "image",
                             "Each picture coded as a video of one picture (H.264) and decoded "
                             "again, with even sides; 0: as it is.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> img_compression{"img_compression", kCompression};
  static constexpr Output<Tensor> out{"output_image", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, img_compression, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::video
