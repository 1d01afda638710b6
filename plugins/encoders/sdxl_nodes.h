// Nodes that turn texts into CONDITIONING for SDXL and its refiner, with the numbers about the
// picture that these models are told (heddle/diffusion/values.h). Stateless.
#pragma once

#include <heddle/node.hpp>

#include "text_nodes.h"

namespace heddle::encoders {

inline constexpr Widget kPictureSide{.number = 1024, .min = 0, .max = 16384};
inline constexpr Widget kPictureOffset{
    .number = 0, .min = 0, .max = 16384, .extra = R"({"advanced": true})"};

struct CLIPTextEncodeSDXL {
  static constexpr Info info{"CLIPTextEncodeSDXL",
                             1,
                             "CLIP Text Encode (SDXL)",
                             "model/conditioning/stable diffusion",
                             "A prompt for each of SDXL's two encoders, the size of the picture "
                             "that it was cut out of, where, and the size wanted.",
                             HEDDLE_NODE_CACHE_ON_DISK};
  static constexpr Input<Value> clip{"clip", 0, "", "CLIP"};
  static constexpr Input<std::int64_t> width{"width", kPictureSide};
  static constexpr Input<std::int64_t> height{"height", kPictureSide};
  static constexpr Input<std::int64_t> crop_w{"crop_w", kPictureOffset};
  static constexpr Input<std::int64_t> crop_h{"crop_h", kPictureOffset};
  static constexpr Input<std::int64_t> target_width{"target_width", kPictureSide};
  static constexpr Input<std::int64_t> target_height{"target_height", kPictureSide};
  static constexpr Input<std::string> text_g{"text_g", kPromptText};
  static constexpr Input<std::string> text_l{"text_l", kPromptText};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(clip, width, height, crop_w, crop_h, target_width,
                                              target_height, text_g, text_l, conditioning);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
  static void infer(Infer& question);
};

struct CLIPTextEncodeSDXLRefiner {
  static constexpr Info info{
      "CLIPTextEncodeSDXLRefiner",
      1,
      "",
      "advanced/conditioning",
      "A prompt for SDXL's refiner, how well the picture shall look, and its "
      "size.",
      HEDDLE_NODE_CACHE_ON_DISK};
  static constexpr Input<double> ascore{"ascore",
                                        Widget{.number = 6, .min = 0, .max = 1000, .step = 0.01}};
  static constexpr Input<std::int64_t> width{"width", kPictureSide};
  static constexpr Input<std::int64_t> height{"height", kPictureSide};
  static constexpr Input<std::string> text{"text", kPromptText};
  static constexpr Input<Value> clip{"clip", 0, "", "CLIP"};
  static constexpr Output<Value> conditioning{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(ascore, width, height, text, clip, conditioning);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
