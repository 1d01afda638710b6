// plugins/vae/h3_video_blocks.h - the block types of MiniMax H3's video autoencoder. Source of the
// architecture: AutoencoderKLMiniMaxH3 of diffusers, by the publishers of the model. Shapes: B
// clips, T frames of the latent, h x w cells, D channels of a token. A cell is 16 x 16 pixels of
// four frames, the first frame of a clip one of a single frame. Blocks are pure and have no
// instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// ---- the decoder, a transformer over all cells of a clip ----

// z (B, C, T, h, w) or (B, C, h, w) -> hidden (B, S + R + 1, D) f32: a token for each of S = T h w
// cells, the registers, and one of zeros. cos and sin (S + R + 1, P) f32 turn the first 2 P
// elements of a head by a cell's place, from -1 to 1 along each axis; they do not turn what comes
// behind the cells, nor the rest of a head.
struct H3VaeLatentIn {
  static constexpr Info info{"h3.vae_latent_in", 1,  "H3 VAE latent input",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<std::int64_t> head{"head", Widget{.number = 64}, "elements of a head"};
  static constexpr Input<std::int64_t> turned{"turned", Widget{.number = 48}, "2 P"};
  static constexpr Input<double> theta{"theta", Widget{.number = 100}};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight quant_bias{"quant.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight registers{"registers"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(z, head, turned, theta, quant, quant_bias, proj,
                                              proj_bias, registers, out, cos, sin);
  static void execute(Context& ctx);
};

// hidden (B, S, D) f32 -> the same: attention and a gated MLP, each added times a number for each
// channel. qkv: (3 D, D), for each head queries, keys and values one after another where `by_head`
// is set, else all queries, all keys and all values. up: (2 F, D), the gate's rows first.
struct H3VaeLayer {
  static constexpr Info info{"h3.vae_layer", 1,  "H3 VAE transformer layer",
                             "blocks/vae",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<std::int64_t> head{"head", Widget{.number = 64}, "elements of a head"};
  static constexpr Input<std::int64_t> turned{"turned", Widget{.number = 48}, "2 P"};
  static constexpr Input<bool> by_head{"by_head"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight scale1{"scale1"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Weight scale2{"scale2"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, cos, sin, head, turned, by_head, eps, norm1, qkv, qkv_bias, proj,
                    proj_bias, scale1, norm2, up, up_bias, down, down_bias, scale2, out);
  static void execute(Context& ctx);
};

// hidden (B, S + R + 1, D) and z, whose sizes it has -> image (B (4 T - 3), 16 h, 16 w, 3) f32,
// about [-1, 1], not clamped. The first three frames are of no use and left out.
struct H3VaeImageOut {
  static constexpr Info info{"h3.vae_image_out", 1,  "H3 VAE picture output",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports =
      heddle::ports(hidden, z, eps, norm, norm_bias, proj, proj_bias, image);
  static void execute(Context& ctx);
};

// ---- the encoder, convolutions over three frames: one and the two before it. Before the first
// frame there are zeros, around a frame what its edges mirror. Norms are of single frames. ----

// image (T, H, W, 3) in [-1, 1] -> hidden (1, T, H, W, C).
struct H3VaeImageIn {
  static constexpr Info info{"h3.vae_image_in", 1,  "H3 VAE picture input",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (1, T, H, W, C) -> (1, T, H, W, C'). The shortcut is there where C' is not C.
struct H3VaeResnet {
  static constexpr Info info{"h3.vae_resnet", 1,  "H3 VAE residual block",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias1{"conv1.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias2{"conv2.bias"};
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, groups, eps, norm1, norm1_bias, conv1, bias1, norm2, norm2_bias, conv2,
                    bias2, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// hidden (1, T, H, W, C) -> (1, (T - 1) / frames + 1, H / 2, W / 2, C).
struct H3VaeDownsample {
  static constexpr Info info{"h3.vae_downsample", 1,  "H3 VAE downsampling",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> frames{"frames", Widget{.number = 1}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, frames, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (1, T, h, w, C) -> mean and logvar (1, C', T, h, w) f32.
struct H3VaeLatentOut {
  static constexpr Info info{"h3.vae_latent_out", 1,  "H3 VAE latent output",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Weight quant{"quant.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight quant_bias{"quant.bias"};
  static constexpr Output<Tensor> mean{"mean"};
  static constexpr Output<Tensor> logvar{"logvar"};
  static constexpr auto ports = heddle::ports(hidden, groups, eps, norm, norm_bias, conv, bias,
                                              quant, quant_bias, mean, logvar);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
