// Nodes that see a picture by a vision tower, and put what it says beside a text. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

struct CLIPVisionEncode {
  static constexpr const char* kCrops[] = {"center", "none", nullptr};

  static constexpr Info info{"CLIPVisionEncode", 2, "CLIP Vision Encode", "conditioning",
                             "What a vision tower sees of pictures."};
  static constexpr Input<Value> clip_vision{"clip_vision", 0, "The vision tower.", "CLIP_VISION"};
  static constexpr Input<Tensor> image{"image", HEDDLE_PORT_HOST, "(B, H, W, C) f32, 0 to 1",
                                       "IMAGE"};
  static constexpr Input<std::string> crop{"crop", Widget{.choices = kCrops}};
  static constexpr Output<Value> seen{"CLIP_VISION_OUTPUT", 0, "", "CLIP_VISION_OUTPUT"};
  static constexpr auto ports = heddle::ports(clip_vision, image, crop, seen);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct StyleModelApply {
  static constexpr const char* kTypes[] = {"multiply", "attn_bias", nullptr};
  static constexpr Widget kStrength{.number = 1, .max = 10, .step = 0.001};

  static constexpr Info info{"StyleModelApply", 1, "Apply Style Model", "conditioning/style_model",
                             "Tokens that a style model makes of a picture, behind those of a "
                             "text."};
  static constexpr Input<Value> conditioning{"conditioning", 0, "", "CONDITIONING"};
  static constexpr Input<Value> style_model{"style_model", 0, "", "STYLE_MODEL"};
  static constexpr Input<Value> clip_vision_output{"clip_vision_output", 0, "",
                                                   "CLIP_VISION_OUTPUT"};
  static constexpr Input<double> strength{"strength", kStrength};
  static constexpr Input<std::string> strength_type{"strength_type", Widget{.choices = kTypes}};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports =
      heddle::ports(conditioning, style_model, clip_vision_output, strength, strength_type, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
