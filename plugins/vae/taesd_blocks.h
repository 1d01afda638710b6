// plugins/vae/taesd_blocks.h - the block types of TAESD, the tiny autoencoders that were trained
// beside those of Stable Diffusion, SDXL, Stable Diffusion 3 and FLUX.1, written down as programs
// over the op catalogue. Source of the architecture: the published models of Ollin Boer Bohan.
// Inside, pictures are (B, H, W, C). Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (B, C, h, w), the large autoencoder's latent -> hidden (B, h, w, C'). The tiny one reads the
// diffusion model's, (z - shift) scale.
struct TaesdLatentIn {
  static constexpr Info info{"taesd.latent_in", 1,  "TAESD latent input",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<double> scale{"scale", Widget{.number = 1}};
  static constexpr Input<double> shift{"shift"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, scale, shift, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// image (B, H, W, 3) in [-1, 1] -> hidden (B, H, W, C').
struct TaesdImageIn {
  static constexpr Info info{"taesd.image_in", 1,  "TAESD picture input",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> (B, H, W, C').
struct TaesdResidual {
  static constexpr Info info{"taesd.residual", 1,  "TAESD residual block",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv1_bias{"conv1.bias"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv2_bias{"conv2.bias"};
  static constexpr Weight conv3{"conv3.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv3_bias{"conv3.bias"};
  static constexpr Weight skip{"skip.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, conv1, conv1_bias, conv2, conv2_bias, conv3, conv3_bias, skip, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> (B, 2 H, 2 W, C).
struct TaesdUpsample {
  static constexpr Info info{"taesd.upsample", 1,  "TAESD upsampling",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> (B, H/2, W/2, C).
struct TaesdDownsample {
  static constexpr Info info{"taesd.downsample", 1,  "TAESD downsampling",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> image (B, H, W, 3) f32, about [-1, 1], not clamped.
struct TaesdImageOut {
  static constexpr Info info{"taesd.image_out", 1,  "TAESD picture output",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports = heddle::ports(hidden, conv, conv_bias, image);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C') -> mean (B, C, h, w) f32, in the large autoencoder's units.
struct TaesdLatentOut {
  static constexpr Info info{"taesd.latent_out", 1,  "TAESD latent output",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> scale{"scale", Widget{.number = 1}};
  static constexpr Input<double> shift{"shift"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> mean{"mean"};
  static constexpr auto ports = heddle::ports(hidden, scale, shift, conv, conv_bias, mean);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
