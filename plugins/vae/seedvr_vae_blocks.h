// plugins/vae/seedvr_vae_blocks.h - the block types of SeedVR2's causal autoencoder, by chunks of
// frames. Source of the architecture: the publisher's (ByteDance, SeedVR2) as ComfyUI runs it. A
// chunk is (T, H, W, C), its frames one after another; with `pictures`, each is a video of one
// frame. A causal convolution reads a frame and the two before it; beyond the edges of a picture is
// nothing. Frames before the chunk are `kept` (2, H, W, C), which the chunk before handed out as
// `keeps`, in the compute type; without them the first frame was before. Group norms, of 32 groups,
// and attention see one frame each. Filters are (O, C, 3, 3, 3). Blocks are pure and have no
// instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (N, C, h, w), one frame, or that of each picture -> hidden (N, h, w, C').
struct SeedvrVaeLatentIn {
  static constexpr Info info{"seedvr.latent_in", 1,  "SeedVR2 VAE latent input",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
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
struct SeedvrVaeImageIn {
  static constexpr Info info{"seedvr.image_in", 1,  "SeedVR2 VAE picture input",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
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

// hidden (T, H, W, C) -> (T, H, W, C'). Two convolutions, each with what it keeps.
struct SeedvrVaeResnet {
  static constexpr Info info{"seedvr.resnet", 1,  "SeedVR2 VAE residual block",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept1{"kept1", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> kept2{"kept2", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
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
  static constexpr Output<Tensor> keeps1{"keeps1"};
  static constexpr Output<Tensor> keeps2{"keeps2"};
  static constexpr auto ports =
      heddle::ports(hidden, kept1, kept2, pictures, norm1, norm1_bias, conv1, conv1_bias, norm2,
                    norm2_bias, conv2, conv2_bias, shortcut, shortcut_bias, out, keeps1, keeps2);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> the same: each pixel looks at all of its frame, with one head.
struct SeedvrVaeAttention {
  static constexpr Info info{"seedvr.vae_attention", 1,  "SeedVR2 VAE attention",
                             "blocks/vae",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, norm, norm_bias, qkv, qkv_bias, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> (T' , 2 H, 2 W, C). A pixel becomes a square of four and, with `time`, of
// two frames, but for a video's first frame; then a convolution.
struct SeedvrVaeUpsample {
  static constexpr Info info{"seedvr.upsample", 1,  "SeedVR2 VAE upsampling",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Input<bool> time{"time", Widget{}};
  static constexpr Weight spread{"spread.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight spread_bias{"spread.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, pictures, time, spread, spread_bias, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C), H and W even -> (T, H / 2, W / 2, C): a convolution of 3 x 3 pixels.
struct SeedvrVaeHalve {
  static constexpr Info info{"seedvr.halve", 1,  "SeedVR2 VAE downsampling of pictures",
                             "blocks/vae",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// The same of frames, too: (T, H, W, C) -> (T / 2, H / 2, W / 2, C), of a video's first frame one.
// kept and keeps are (1, H, W, C).
struct SeedvrVaeDownsample {
  static constexpr Info info{"seedvr.downsample", 1,  "SeedVR2 VAE downsampling",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(hidden, kept, pictures, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> image (T, H, W, 3) f32, not clamped.
struct SeedvrVaeImageOut {
  static constexpr Info info{"seedvr.image_out", 1,  "SeedVR2 VAE picture output",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, pictures, norm, norm_bias, conv, conv_bias, image, keeps);
  static void execute(Context& ctx);
};

// hidden (T, h, w, C') -> mean, logvar (T, C, h, w) f32; logvar within [-30, 20].
struct SeedvrVaeLatentOut {
  static constexpr Info info{"seedvr.latent_out", 1,  "SeedVR2 VAE latent output",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> pictures{"pictures", Widget{}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> mean{"mean"};
  static constexpr Output<Tensor> logvar{"logvar"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, pictures, norm, norm_bias, conv, conv_bias, mean, logvar, keeps);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
