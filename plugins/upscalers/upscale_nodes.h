// ImageUpscaleWithModel: pictures through an upscaler's model, in tiles of 512 pixels that overlap
// by 32 where they are larger, as ComfyUI does; in smaller ones, with a warning and not cached,
// where these find no room. Any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::upscalers {

struct ImageUpscaleWithModel {
  static constexpr Info info{"ImageUpscaleWithModel",
                             1,
                             "Upscale Image (using Model)",
                             "image/upscaling",
                             "Makes pictures larger by an upscaler's model, tile by tile.",
                             HEDDLE_NODE_TILES};
  static constexpr Input<Value> upscale_model{"upscale_model", HEDDLE_PORT_PASS, "The upscaler.",
                                              "UPSCALE_MODEL"};
  static constexpr Input<Tensor> image{"image", 0, "(B, H, W, C) f32, 0 to 1", "IMAGE"};
  static constexpr Output<Tensor> out{"IMAGE", 0, "(B, s H, s W, C) f32, 0 to 1", "IMAGE"};
  static constexpr auto ports = heddle::ports(upscale_model, image, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::upscalers
