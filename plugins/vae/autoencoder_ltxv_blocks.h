// plugins/vae/autoencoder_ltxv_blocks.h - the block types of LTX-Video's autoencoder. Source of the
// architecture: AutoencoderKLLTXVideo of diffusers, by the publishers of the model. Shapes: B
// videos, F frames of the latent, T frames, H x W pixels or cells. A filter over three frames is
// three of one frame each ("first", "second", "third"): a convolution reads a frame and its
// neighbours, or, where it is causal, the two frames before it. What is before the first frame is
// the first one once more, what is behind the last one the last. Blocks are pure and have no
// instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (B, C, F, h, w) or (B, C, h, w), a frame each, in the diffusion model's units -> hidden
// (B, F, h, w, C'). mean and deviation (C): the autoencoder's units.
struct LtxvVaeLatentIn {
  static constexpr Info info{"ltxv.vae_latent_in", 1,  "LTX-Video VAE latent input",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Weight mean{"statistics.mean"};
  static constexpr Weight deviation{"statistics.deviation"};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, mean, deviation, first, second, third, bias, out);
  static void execute(Context& ctx);
};

// image (T, 4 H, 4 W, 3) in [-1, 1], one video -> hidden (1, T, H, W, C): squares of 4 x 4 pixels
// are a cell.
struct LtxvVaeImageIn {
  static constexpr Info info{"ltxv.vae_image_in", 1,  "LTX-Video VAE picture input",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, first, second, third, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> (B, T, H, W, C'). The shortcut and its norm are there where C' is not
// C.
struct LtxvVaeResnet {
  static constexpr Info info{"ltxv.vae_resnet", 1,  "LTX-Video VAE residual block",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> causal{"causal", Widget{}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-8}};
  static constexpr Input<double> shortcut_eps{"shortcut_eps", Widget{.number = 1e-6}};
  static constexpr Weight first1{"conv1.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second1{"conv1.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third1{"conv1.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias1{"conv1.bias"};
  static constexpr Weight first2{"conv2.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second2{"conv2.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third2{"conv2.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias2{"conv2.bias"};
  static constexpr Weight norm{"shortcut.norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"shortcut.norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, causal, eps, shortcut_eps, first1, second1, third1, bias1, first2,
                    second2, third2, bias2, norm, norm_bias, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> (B, 2 T - 1, 2 H, 2 W, C): a convolution to 8 C channels, of which each
// eight are a cube of 2 x 2 x 2; the first frame of all is left out.
struct LtxvVaeUpsample {
  static constexpr Info info{"ltxv.vae_upsample", 1,  "LTX-Video VAE upsampling",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, first, second, third, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> (B, (T - 1) / 2 + 1, (H + 1) / 2, (W + 1) / 2, C), by a causal
// convolution.
struct LtxvVaeDownsample {
  static constexpr Info info{"ltxv.vae_downsample", 1,  "LTX-Video VAE downsampling",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, first, second, third, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> image (B T, 4 H, 4 W, 3) f32.
struct LtxvVaeImageOut {
  static constexpr Info info{"ltxv.vae_image_out", 1,  "LTX-Video VAE picture output",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-8}};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports = heddle::ports(hidden, eps, first, second, third, bias, image);
  static void execute(Context& ctx);
};

// hidden (1, F, h, w, D) -> mean (1, C, F, h, w) f32 in the diffusion model's units, and logvar
// (1, 1, F, h, w) f32, which all channels share. mean and deviation (C) as of LtxvVaeLatentIn.
struct LtxvVaeLatentOut {
  static constexpr Info info{"ltxv.vae_latent_out", 1,  "LTX-Video VAE latent output",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-8}};
  static constexpr Weight mean{"statistics.mean"};
  static constexpr Weight deviation{"statistics.deviation"};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"mean"};
  static constexpr Output<Tensor> logvar{"logvar"};
  static constexpr auto ports =
      heddle::ports(hidden, eps, mean, deviation, first, second, third, bias, out, logvar);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
