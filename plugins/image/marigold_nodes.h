// MarigoldV2PostProcess: what Marigold v2 draws, as pictures to look at. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct MarigoldV2PostProcess {
  static constexpr const char* kPredictions[] = {"depth", "normals", "albedo", nullptr};
  static constexpr Widget kPrediction{.text = "depth", .choices = kPredictions, .type = "COMBO"};

  static constexpr Info info{"MarigoldV2PostProcess",
                             1,
                             "Marigold V2 Post-Process",
                             "image",
                             "depth: each picture from its farthest, black, to its nearest, white; "
                             "normals: directions of length 1; albedo: linear light as sRGB.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::string> prediction{"prediction", kPrediction};
  static constexpr Output<Tensor> out{"IMAGE", 0, "(B, H, W, 3) f32; as many channels as `image`",
                                      "IMAGE"};
  static constexpr auto ports = heddle::ports(image, prediction, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
