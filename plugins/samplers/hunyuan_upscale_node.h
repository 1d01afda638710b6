// HunyuanVideo15LatentUpscaleWithModel: a latent of HunyuanVideo 1.5 in another size, made sharper
// by a model, for its super resolution. Stateless.
#pragma once

#include <heddle/node.hpp>

#include "latent_scale_nodes.h"

namespace heddle::samplers {

struct HunyuanVideo15LatentUpscaleWithModel {
  static constexpr Info info{"HunyuanVideo15LatentUpscaleWithModel", 1,
                             "Hunyuan Video 15 Latent Upscale With Model",
                             "model/latent/hunyhuan video",
                             "For pictures of this size; a side of 0 follows from the other."};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "LATENT_UPSCALE_MODEL"};
  static constexpr Input<Value> samples{"samples", HEDDLE_PORT_HOST, "", "LATENT"};
  static constexpr Input<std::string> upscale_method{
      "upscale_method",
      Widget{
          .choices = kLatentScaleMethods, .extra = R"({"default": "bilinear"})", .type = "COMBO"}};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 1280, .min = 0, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 720, .min = 0, .max = 16384, .step = 8}};
  static constexpr Input<std::string> crop{
      "crop", Widget{.choices = LatentUpscale::kCrops, .type = "COMBO"}};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(model, samples, upscale_method, width, height, crop, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
