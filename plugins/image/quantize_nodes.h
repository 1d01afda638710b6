// ImageQuantize: pictures in few colours. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct ImageQuantize {
  static constexpr const char* kDithers[] = {"none",    "floyd-steinberg", "bayer-2", "bayer-4",
                                             "bayer-8", "bayer-16",        nullptr};
  static constexpr Widget kColors{.number = 256, .min = 1, .max = 256, .step = 1};
  static constexpr Widget kDither{.choices = kDithers, .type = "COMBO"};

  static constexpr Info info{"ImageQuantize",
                             1,
                             "",
                             "image/postprocessing",
                             "Each picture in the colours of a palette of its own; alpha is kept.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Tensor> image{"image", 0, "", "IMAGE"};
  static constexpr Input<std::int64_t> colors{"colors", kColors};
  static constexpr Input<std::string> dither{"dither", kDither};
  static constexpr Output<Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, colors, dither, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::image
