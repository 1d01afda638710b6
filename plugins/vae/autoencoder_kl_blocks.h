// plugins/vae/autoencoder_kl_blocks.h - the block types of the KL autoencoder, written down as
// programs over the op catalogue. Source of the architecture: Rombach et al. 2022 (latent
// diffusion). Inside, pictures are (B, H, W, C); the latent's (B, C, h, w) is turned on the way in
// and out. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (B, C, h, w) -> hidden (B, h, w, C'), through the optional 1x1 convolution and the first 3x3
// one.
struct VaeLatentIn {
  static constexpr Info info{"vae.latent_in", 1,  "VAE latent input",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight quant_bias{"quant.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, quant, quant_bias, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// image (B, H, W, 3) -> hidden (B, H, W, C').
struct VaeImageIn {
  static constexpr Info info{"vae.image_in", 1,  "VAE picture input",
                             "blocks/vae",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> (B, H, W, C').
struct VaeResnet {
  static constexpr Info info{"vae.resnet", 1,  "VAE residual block",
                             "blocks/vae", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, groups, eps, norm1, norm1_bias, conv1, conv1_bias, norm2, norm2_bias,
                    conv2, conv2_bias, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// hidden (F, H, W, C), the frames of a video -> the same (plugins/blocks/frame_residual.h). `mix`:
// the share of what the filters make.
struct VaeFrames {
  static constexpr Info info{"vae.frames", 1,  "VAE residual block over frames",
                             "blocks/vae", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Weight mix{"mix"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, groups, eps, norm1, norm1_bias, conv1, conv1_bias, norm2, norm2_bias,
                    conv2, conv2_bias, mix, out);
  static void execute(Context& ctx);
};

// image (F, H, W, 3) -> the same through a filter of three frames, f32.
struct VaeFramesOut {
  static constexpr Info info{"vae.frames_out", 1,  "VAE output over frames",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"image"};
  static constexpr auto ports = heddle::ports(image, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> the same: all pixels attend to all, one head. Files hold q, k, v and the
// projection either as matrices or as 1x1 filters; the slots of one of the two forms are filled.
struct VaeAttention {
  static constexpr Info info{"vae.attention", 1,  "VAE attention",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qkv_filter{"qkv.filter", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_filter{"proj.filter", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, groups, eps, norm, norm_bias, qkv, qkv_filter,
                                              qkv_bias, proj, proj_filter, proj_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> (B, 2 H, 2 W, C).
struct VaeUpsample {
  static constexpr Info info{"vae.upsample", 1,  "VAE upsampling",
                             "blocks/vae",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> (B, H/2, W/2, C).
struct VaeDownsample {
  static constexpr Info info{"vae.downsample", 1,  "VAE downsampling",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> image (B, H, W, 3) f32, not clamped.
struct VaeImageOut {
  static constexpr Info info{"vae.image_out", 1,  "VAE picture output",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports =
      heddle::ports(hidden, groups, eps, norm, norm_bias, conv, conv_bias, image);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C') -> mean, logvar (B, C, h, w) f32; logvar within [-30, 20], as diffusers
// clamps it.
struct VaeLatentOut {
  static constexpr Info info{"vae.latent_out", 1,  "VAE latent output",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight quant_bias{"quant.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> mean{"mean"};
  static constexpr Output<Tensor> logvar{"logvar"};
  static constexpr auto ports = heddle::ports(hidden, groups, eps, norm, norm_bias, conv, conv_bias,
                                              quant, quant_bias, mean, logvar);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
