// plugins/vae/wan_video_blocks.h - the block types of Wan 2.1's causal autoencoder on videos, by
// chunks of frames. Source of the architecture: AutoencoderKLWan of diffusers. A chunk is
// (T, H, W, C), its frames one after another. A causal convolution reads a frame and the two before
// it: those before the chunk are `kept` (2, H, W, C), which the chunk before handed out, in the
// compute type. Without them nothing was before. Filters are (O, C, 3, R, S). Blocks are pure and
// have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (1, C, h, w), one frame -> hidden (1, h, w, C').
struct WanVideoLatentIn {
  static constexpr Info info{"wan.video_latent_in", 2,  "Causal VAE latent input, of videos",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight quant_bias{"quant.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(z, kept, quant, quant_bias, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// image (T, H, W, 3) in [-1, 1] -> hidden (T, H, W, C).
struct WanVideoImageIn {
  static constexpr Info info{"wan.video_image_in", 2,  "Causal VAE picture input, of videos",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(image, kept, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> (T, H, W, C'). Two convolutions, each with what it keeps.
struct WanVideoResnet {
  static constexpr Info info{"wan.video_resnet", 2,  "Causal VAE residual block, of videos",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept1{"kept1", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> kept2{"kept2", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps1{"keeps1"};
  static constexpr Output<Tensor> keeps2{"keeps2"};
  static constexpr auto ports =
      heddle::ports(hidden, kept1, kept2, norm1, conv1, conv1_bias, norm2, conv2, conv2_bias,
                    shortcut, shortcut_bias, out, keeps1, keeps2);
  static void execute(Context& ctx);
};

// What the first chunk, of one frame, leaves to a convolution along time, which it does not pass:
// hidden (1, H, W, C) -> keeps, (2, H, W, C) of zeros where frames are doubled, else the same.
struct WanTimeBegin {
  static constexpr Info info{"wan.time_begin", 1,  "Causal VAE, first frame",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> doubles{"doubles"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(hidden, doubles, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> (2 T, H, W, C): a causal convolution along time makes two frames of each.
struct WanTimeUpsample {
  static constexpr Info info{"wan.time_upsample", 2,  "Causal VAE upsampling of frames",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(hidden, kept, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C), T even -> (T / 2, H, W, C): a convolution along time makes a frame of each
// second one and its two neighbours. kept and keeps (1, H, W, C).
struct WanTimeDownsample {
  static constexpr Info info{"wan.time_downsample", 2,  "Causal VAE downsampling of frames",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(hidden, kept, conv, conv_bias, out, keeps);
  static void execute(Context& ctx);
};

// hidden (T, H, W, C) -> image (T, H, W, 3) f32, not clamped.
struct WanVideoImageOut {
  static constexpr Info info{"wan.video_image_out", 2,  "Causal VAE picture output, of videos",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(hidden, kept, norm, conv, conv_bias, image, keeps);
  static void execute(Context& ctx);
};

// hidden (1, h, w, C') -> mean (1, C, h, w) f32 of the posterior.
struct WanVideoLatentOut {
  static constexpr Info info{"wan.video_latent_out", 2,  "Causal VAE latent output, of videos",
                             "blocks/vae",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight quant_bias{"quant.bias"};
  static constexpr Output<Tensor> mean{"mean"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports =
      heddle::ports(hidden, kept, norm, conv, conv_bias, quant, quant_bias, mean, keeps);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
