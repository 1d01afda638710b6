// plugins/vae/autoencoder_wan_blocks.h - the block types that the causal autoencoders of Wan 2.1,
// Qwen-Image and Qwen-Image 2.1 have besides those that they share with the KL autoencoder
// (autoencoder_kl_blocks.h). Source of the architecture: AutoencoderKLQwenImage and
// AutoencoderKLQwenImage21 of diffusers. Norms are RMS norms over the
// channels of a pixel. Pictures are (B, H, W, C). Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// hidden (B, H, W, C) -> (B, H, W, C').
struct WanResnet {
  static constexpr Info info{"wan.resnet", 1,  "Causal VAE residual block",
                             "blocks/vae", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, norm1, conv1, conv1_bias, norm2, conv2,
                                              conv2_bias, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> the same: all pixels attend to all, one head.
struct WanAttention {
  static constexpr Info info{"wan.attention", 1,  "Causal VAE attention",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight qkv{"qkv.filter", HEDDLE_USE_CONV2D};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.filter", HEDDLE_USE_CONV2D};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, norm, qkv, qkv_bias, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// The shortcut around a level that doubles the size: hidden (B, 2 H, 2 W, C'), what the level made,
// plus from (B, H, W, C), what it was made of, of which each number is repeated. C is k C'. With
// `frames` 2 the level would double the frames, too; of the two it is given the second, or, with
// `whole`, of a chunk of a video (B frames), both, one after the other: hidden (2 B, 2 H, 2 W, C').
struct WanUpShortcut {
  static constexpr Info info{"wan.up_shortcut", 1,  "Causal VAE shortcut, upwards",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> from{"from"};
  static constexpr Input<std::int64_t> frames{"frames", Widget{.number = 1}};
  static constexpr Input<bool> whole{"whole", Widget{}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, from, frames, whole, out);
  static void execute(Context& ctx);
};

// The shortcut around a level that divides the size by `size`, 1 or 2: hidden (B, H / size,
// W / size, C'), plus means over the numbers of from (B, H, W, C). `frames` 2: over two frames, the
// first of which is 0, or, with `whole`, of a chunk of a video, over each two of its B frames:
// hidden (B / 2, H / size, W / size, C'). C frames is k C'.
struct WanDownShortcut {
  static constexpr Info info{"wan.down_shortcut", 1,  "Causal VAE shortcut, downwards",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> from{"from"};
  static constexpr Input<std::int64_t> size{"size", Widget{.number = 1}};
  static constexpr Input<std::int64_t> frames{"frames", Widget{.number = 1}};
  static constexpr Input<bool> whole{"whole", Widget{}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, from, size, frames, whole, out);
  static void execute(Context& ctx);
};

// image (B, 2 H, 2 W, C) -> (B, H, W, 4 C): the pixels of each square beside each other, channel by
// channel, column by column.
struct WanPatchIn {
  static constexpr Info info{"wan.patch_in", 1,  "Causal VAE squares of pixels",
                             "blocks/vae",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Output<Tensor> out{"patches"};
  static constexpr auto ports = heddle::ports(image, out);
  static void execute(Context& ctx);
};

// And back: hidden (B, H, W, 4 C) -> image (B, 2 H, 2 W, C).
struct WanPatchOut {
  static constexpr Info info{"wan.patch_out", 1,  "Causal VAE pixels of squares",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports = heddle::ports(hidden, image);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> image (B, H, W, 3) f32, not clamped; of pictures with alpha (B, H, W, 4).
struct WanImageOut {
  static constexpr Info info{"wan.image_out", 1,  "Causal VAE picture output",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports = heddle::ports(hidden, norm, conv, conv_bias, image);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C') -> mean, logvar (B, C, h, w) f32; logvar within [-30, 20].
struct WanLatentOut {
  static constexpr Info info{"wan.latent_out", 1,  "Causal VAE latent output",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight quant_bias{"quant.bias"};
  static constexpr Output<Tensor> mean{"mean"};
  static constexpr Output<Tensor> logvar{"logvar"};
  static constexpr auto ports =
      heddle::ports(hidden, norm, conv, conv_bias, quant, quant_bias, mean, logvar);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
