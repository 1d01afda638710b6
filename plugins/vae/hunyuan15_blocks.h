// plugins/vae/hunyuan15_blocks.h - the block types of HunyuanVideo 1.5's causal autoencoder, by
// chunks of frames. Source of the architecture: AutoencoderKLHunyuanVideo15 of diffusers. A chunk
// is (T, H, W, C), its frames one after another; with `pictures`, each is a video of one frame. A
// causal convolution reads a frame and the two before it, and what lies beyond an edge is the
// edge's own. Frames before the chunk are `kept` (2, H, W, C), which the chunk before handed out as
// `keeps`, in the compute type. Without them the first frame was before. Norms are RMS norms over
// the channels of a pixel. Filters are (O, C, 3, 3, 3). Blocks are pure and have no instance; any
// thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (N, C, h, w), one frame, or that of each picture -> hidden (N, h, w, C'): a convolution, plus
// each number of z as often as C' has it.
struct Hunyuan15LatentIn {
  static constexpr Info info{"hunyuan15.latent_in", 1,  "Hunyuan VAE latent input",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(z, kept, pictures, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// image (T, H, W, 3) in [-1, 1] -> hidden (T, H, W, C).
struct Hunyuan15ImageIn {
  static constexpr Info info{"hunyuan15.image_in", 1,  "Hunyuan VAE picture input",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(image, kept, pictures, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> the same. Two convolutions, each with what it keeps.
struct Hunyuan15Resnet {
  static constexpr Info info{"hunyuan15.resnet", 1,  "Hunyuan VAE residual block",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept1{"kept1", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> kept2{"kept2", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps1{"keeps1"};
  static constexpr Output<Tensor> keeps2{"keeps2"};
  static constexpr auto ports =
      heddle::ports(hidden, kept1, kept2, pictures, norm1, conv1, conv1_bias, norm2, conv2,
                    conv2_bias, out, keeps1, keeps2);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> the same: the pixels of a frame attend to those of all frames up to it,
// one head. kept (P, H, W, 2 C): keys and values of the P frames before the chunk; keeps: of all.
struct Hunyuan15Attention {
  static constexpr Info info{"hunyuan15.attention", 1,  "Hunyuan VAE attention",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight qkv{"qkv.filter", HEDDLE_USE_CONV2D};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.filter", HEDDLE_USE_CONV2D};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, pictures, norm, qkv, qkv_bias, proj, proj_bias, out, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> (T, 2 H, 2 W, C'): a convolution makes the numbers of each square, plus
// each number as often as it is needed. `time`: also two frames of each, but of a video's first
// one, where nothing was kept.
struct Hunyuan15Upsample {
  static constexpr Info info{"hunyuan15.upsample", 1,  "Hunyuan VAE upsampling",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Input<bool> time{"time", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, pictures, time, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// And back: hidden (T, H, W, C) -> (T, H / 2, W / 2, C'), with `time` (T / 2, ...), but of a
// video's first frame; plus means of the numbers.
struct Hunyuan15Downsample {
  static constexpr Info info{"hunyuan15.downsample", 1,  "Hunyuan VAE downsampling",
                             "blocks/vae",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Input<bool> time{"time", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, pictures, time, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> image (T, H, W, 3) f32, not clamped.
struct Hunyuan15ImageOut {
  static constexpr Info info{"hunyuan15.image_out", 1,  "Hunyuan VAE picture output",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, pictures, norm, conv, conv_bias, image, keeps);
  static void execute(Context& ctx);
};

// hidden (T, h, w, C') -> mean, logvar (T, C, h, w) f32: a convolution plus means of the numbers;
// logvar within [-30, 20].
struct Hunyuan15LatentOut {
  static constexpr Info info{"hunyuan15.latent_out", 1,  "Hunyuan VAE latent output",
                             "blocks/vae",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> mean{"mean"};
  static constexpr Output<Tensor> logvar{"logvar"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, pictures, norm, conv, conv_bias, mean, logvar, keeps);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
