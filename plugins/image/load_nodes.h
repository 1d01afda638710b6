// LoadImage and LoadImageMask: picture files as IMAGE (B, H, W, 3) and MASK (B, H, W) f32 in host
// memory; B is 1, or the number of pictures of an animation. A picture of more than 178,956,970
// pixels is refused; HEDDLE_MOST_PIXELS in the environment sets another limit. The file is found
// below the input folder, or below the one that the name ends in: "cat.png [output]", "cat.png
// [temp]". Both are cached by what the file holds.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

inline constexpr Widget kPictureFile{
    .source = "input", .kind = HEDDLE_WIDGET_FILE, .extra = "{\"image_upload\": true}"};

struct LoadImage {
  static constexpr Info info{"LoadImage",
                             1,
                             "Load Image",
                             "image",
                             "Reads a picture; the mask is 1 where it is transparent.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> image{"image", kPictureFile};
  static constexpr Output<Tensor> picture{"IMAGE", 0, "", "IMAGE"};
  static constexpr Output<Tensor> mask{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(image, picture, mask);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LoadImageMask {
  static constexpr Info info{"LoadImageMask",
                             1,
                             "Load Image (as Mask)",
                             "mask",
                             "Reads one channel of a picture as a mask; alpha is inverted.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr const char* kChannels[] = {"alpha", "red", "green", "blue", nullptr};
  static constexpr Input<std::string> image{"image", kPictureFile};
  static constexpr Input<std::string> channel{"channel", {.choices = kChannels}};
  static constexpr Output<Tensor> mask{"MASK", 0, "", "MASK"};
  static constexpr auto ports = heddle::ports(image, channel, mask);
  void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::image
