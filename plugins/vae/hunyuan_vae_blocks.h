// plugins/vae/hunyuan_vae_blocks.h - the block types of HunyuanVideo 1.0's causal autoencoder, over
// whole videos. Source of the architecture: AutoencoderKLHunyuanVideo of diffusers. Activations are
// (N, T, H, W, C): N videos of T frames. A causal convolution reads a frame and the two before it;
// what lies beyond an edge, or before the first frame, is the edge's own. Group norms take all
// frames together, which is why a video cannot go by chunks to the same numbers. Filters are
// (O, C, 3, 3, 3). Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (N, C, T, h, w), or (N, C, h, w) of pictures -> hidden (N, T, h, w, C').
struct HunyuanVaeLatentIn {
  static constexpr Info info{
      "hunyuan_vae.latent_in", 1, "Hunyuan 1.0 VAE latent input", "blocks/vae", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight quant_bias{"quant.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, quant, quant_bias, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// image (T, H, W, 3) in [-1, 1], one video -> hidden (1, T, H, W, C).
struct HunyuanVaeImageIn {
  static constexpr Info info{"hunyuan_vae.image_in", 1,  "Hunyuan 1.0 VAE picture input",
                             "blocks/vae",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (N, T, H, W, C) -> (N, T, H, W, C').
struct HunyuanVaeResnet {
  static constexpr Info info{"hunyuan_vae.resnet", 1,  "Hunyuan 1.0 VAE residual block",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
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
      heddle::ports(hidden, groups, norm1, norm1_bias, conv1, conv1_bias, norm2, norm2_bias, conv2,
                    conv2_bias, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// hidden (N, T, H, W, C) -> the same: the pixels of a frame attend to those of all frames up to it,
// one head. Matrices (O, C), or filters of one pixel in their place.
struct HunyuanVaeAttention {
  static constexpr Info info{
      "hunyuan_vae.attention", 1, "Hunyuan 1.0 VAE attention", "blocks/vae", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qkv_filter{"qkv.filter", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_filter{"proj.filter", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, groups, norm, norm_bias, qkv, qkv_filter,
                                              qkv_bias, proj, proj_filter, proj_bias, out);
  static void execute(Context& ctx);
};

// hidden (N, T, H, W, C) -> (N, T', 2 H, 2 W, C): each pixel four times, with `time` also each
// frame but the first twice (T' = 2 T - 1), then a convolution.
struct HunyuanVaeUpsample {
  static constexpr Info info{"hunyuan_vae.upsample", 1,  "Hunyuan 1.0 VAE upsampling",
                             "blocks/vae",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> time{"time", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, time, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// And back: a convolution of every second pixel, with `time` of every second frame.
struct HunyuanVaeDownsample {
  static constexpr Info info{
      "hunyuan_vae.downsample", 1, "Hunyuan 1.0 VAE downsampling", "blocks/vae", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> time{"time", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, time, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (N, T, H, W, C) -> image (N T, H, W, 3) f32, not clamped.
struct HunyuanVaeImageOut {
  static constexpr Info info{
      "hunyuan_vae.image_out", 1, "Hunyuan 1.0 VAE picture output", "blocks/vae", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports =
      heddle::ports(hidden, groups, norm, norm_bias, conv, conv_bias, image);
  static void execute(Context& ctx);
};

// hidden (N, T, h, w, C') -> mean, logvar (N, C, T, h, w) f32; logvar within [-30, 20].
struct HunyuanVaeLatentOut {
  static constexpr Info info{
      "hunyuan_vae.latent_out", 1, "Hunyuan 1.0 VAE latent output", "blocks/vae", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight quant_bias{"quant.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> mean{"mean"};
  static constexpr Output<Tensor> logvar{"logvar"};
  static constexpr auto ports = heddle::ports(hidden, groups, norm, norm_bias, conv, conv_bias,
                                              quant, quant_bias, mean, logvar);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
