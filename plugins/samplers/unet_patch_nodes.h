// Nodes that change what a UNet does inside: the model is built anew over the same weights with one
// more patch in its configuration (plugins/denoisers/unet_patches.h). Other models are refused, as
// they have nothing of the kind: in ComfyUI these nodes fail there, or change nothing. On the host;
// stateless.
#pragma once

#include "patch_nodes.h"

namespace heddle::samplers {

namespace unet_ports {
inline constexpr const char* kCategory = "model/patch/unet";
inline constexpr const char* kMethods[] = {"bicubic", "nearest-exact", "bilinear",
                                           "area",    "bislerp",       nullptr};
constexpr Input<double> factor(const char* name, double number) {
  return {name, patch_ports::advanced(number, 0, 10, 0.01)};
}
}  // namespace unet_ports

// The UNet with one more patch. `node`: who asks, for errors.
Value with_unet_patch(Context& ctx, const Value& model, const Value& patch, const char* node);

struct FreeU {
  static constexpr Info info{"FreeU",
                             1,
                             "FreeU",
                             unet_ports::kCategory,
                             "Scales half of a UNet's channels on its way up, and the lowest waves "
                             "of what it reads there of the way down.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> b1 = unet_ports::factor("b1", 1.1);
  static constexpr Input<double> b2 = unet_ports::factor("b2", 1.2);
  static constexpr Input<double> s1 = unet_ports::factor("s1", 0.9);
  static constexpr Input<double> s2 = unet_ports::factor("s2", 0.2);
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, b1, b2, s1, s2, out);
  static void execute(Context& ctx);
};

struct FreeUV2 {
  static constexpr Info info{"FreeU_V2",
                             1,
                             "FreeU_V2",
                             unet_ports::kCategory,
                             "FreeU whose channels are scaled most where their mean is large.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> b1 = unet_ports::factor("b1", 1.3);
  static constexpr Input<double> b2 = unet_ports::factor("b2", 1.4);
  static constexpr Input<double> s1 = unet_ports::factor("s1", 0.9);
  static constexpr Input<double> s2 = unet_ports::factor("s2", 0.2);
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, b1, b2, s1, s2, out);
  static void execute(Context& ctx);
};

struct HyperTile {
  static constexpr Info info{"HyperTile",
                             1,
                             "",
                             unet_ports::kCategory,
                             "A UNet's self-attention in tiles, which is faster in large pictures. "
                             "Of swap_size above 2 a division is drawn once for each attention.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::int64_t> tile_size{
      "tile_size", Widget{.number = 256, .min = 1, .max = 2048, .extra = patch_ports::kAdvanced}};
  static constexpr Input<std::int64_t> swap_size{
      "swap_size", Widget{.number = 2, .min = 1, .max = 128, .extra = patch_ports::kAdvanced}};
  static constexpr Input<std::int64_t> max_depth{
      "max_depth", Widget{.max = 10, .extra = patch_ports::kAdvanced}};
  static constexpr Input<bool> scale_depth{"scale_depth", Widget{.extra = patch_ports::kAdvanced}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports =
      heddle::ports(model, tile_size, swap_size, max_depth, scale_depth, out);
  static void execute(Context& ctx);
};

// Where it is at work the model is built with one more block; elsewhere it is asked without it
// (model_patches.h).
struct PatchModelAddDownscale {
  static constexpr Info info{"PatchModelAddDownscale",
                             1,
                             "PatchModelAddDownscale (Kohya Deep Shrink)",
                             unet_ports::kCategory,
                             "What a block of a UNet's way down gives is made smaller in a part of "
                             "the way, so that a large picture is drawn as a whole.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<std::int64_t> block_number{
      "block_number",
      Widget{.number = 3, .min = 1, .max = 32, .step = 1, .extra = patch_ports::kAdvanced},
      "Of the blocks of the way down, of which the first is 0."};
  static constexpr Input<double> downscale_factor{
      "downscale_factor", Widget{.number = 2, .min = 0.1, .max = 9, .step = 0.001}};
  static constexpr Input<double> start_percent{"start_percent",
                                               patch_ports::advanced(0, 0, 1, 0.001)};
  static constexpr Input<double> end_percent{"end_percent",
                                             patch_ports::advanced(0.35, 0, 1, 0.001)};
  static constexpr Input<bool> downscale_after_skip{
      "downscale_after_skip", Widget{.number = 1, .extra = patch_ports::kAdvanced},
      "The way up gets what this block gave in its own size."};
  static constexpr Input<std::string> downscale_method{
      "downscale_method", {.choices = unet_ports::kMethods, .type = "COMBO"}};
  static constexpr Input<std::string> upscale_method{
      "upscale_method",
      {.choices = unet_ports::kMethods, .type = "COMBO"},
      "Of several such nodes the first one's counts."};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports =
      heddle::ports(model, block_number, downscale_factor, start_percent, end_percent,
                    downscale_after_skip, downscale_method, upscale_method, out);
  static void execute(Context& ctx);
};

struct TomePatchModel {
  static constexpr Info info{"TomePatchModel",
                             1,
                             "",
                             "model_patches/unet",
                             "Queries of tokens that look alike become their mean in a UNet's "
                             "largest self-attentions, which is faster.",
                             patch_ports::kFlags};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> ratio{"ratio", Widget{.number = 0.3, .max = 1, .step = 0.01}};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, ratio, out);
  static void execute(Context& ctx);
};

// One more evaluation of the negative conditioning at each step (second_look.h).
struct SelfAttentionGuidance {
  static constexpr Info info{"SelfAttentionGuidance",
                             1,
                             "Self-Attention Guidance",
                             "experimental",
                             "Away from what a UNet sees in a picture that is blurred where it "
                             "looks.",
                             patch_ports::kExperimental};
  static constexpr Input<Value> model = patch_ports::model();
  static constexpr Input<double> scale{"scale",
                                       Widget{.number = 0.5, .min = -2, .max = 5, .step = 0.01}};
  static constexpr Input<double> blur_sigma{"blur_sigma", patch_ports::advanced(2, 0, 10, 0.1)};
  static constexpr Output<Value> out = patch_ports::model_out();
  static constexpr auto ports = heddle::ports(model, scale, blur_sigma, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
