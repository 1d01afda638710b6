// plugins/vae/latent_upsampler_blocks.h - the block types of the models that make latents of
// LTX-Video larger. Source of the architecture: LTXLatentUpsamplerModel and
// LTX2LatentUpsamplerModel of diffusers, by the publishers of the models. Shapes: B videos, F
// frames of the latent, H x W cells, C channels. A filter over three frames is three of one frame
// each
// ("first", "second", "third"): it reads a frame and its neighbours; zeros are around all and
// before the first frame and behind the last one. Norms are over all frames of a video. Blocks are
// pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (B, C, F, h, w) in the autoencoder's units -> hidden (B, F, h, w, C').
struct LatentUpIn {
  static constexpr Info info{"latent_up.in", 1,  "Latent upsampler input",
                             "blocks/vae",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, first, second, third, bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, F, H, W, C) -> the same.
struct LatentUpResnet {
  static constexpr Info info{"latent_up.resnet", 1,  "Latent upsampler residual block",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight first1{"conv1.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second1{"conv1.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third1{"conv1.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias1{"conv1.bias"};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm_bias1{"norm1.bias"};
  static constexpr Weight first2{"conv2.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second2{"conv2.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third2{"conv2.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias2{"conv2.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm_bias2{"norm2.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, first1, second1, third1, bias1, norm1, norm_bias1, first2, second2,
                    third2, bias2, norm2, norm_bias2, out);
  static void execute(Context& ctx);
};

// hidden (B, F, H, W, C) -> (B, F, H', W', C): frame by frame a filter to n n C channels, of which
// each n n are a square of cells, n `times`; of these squares' cells every d-th, d `step`, of a
// blur over five. H' = (n H - 1) / d + 1.
struct LatentUpGrow {
  static constexpr Info info{"latent_up.grow", 1,  "Latent upsampler growing",
                             "blocks/vae",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> times{"times", Widget{.number = 2}};
  static constexpr Input<std::int64_t> step{"step", Widget{.number = 1}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, times, step, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, F, H, W, C) -> (B, 2 F - 1, H, W, C): a filter to 2 C channels, of which each two are
// two frames; the first frame of all is left out.
struct LatentUpFrames {
  static constexpr Info info{"latent_up.frames", 1,  "Latent upsampler of frames",
                             "blocks/vae",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, first, second, third, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, F, H, W, C) -> larger (B, C', F, H, W) f32.
struct LatentUpOut {
  static constexpr Info info{"latent_up.out", 1,  "Latent upsampler output",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight first{"conv.first", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"conv.second", HEDDLE_USE_CONV2D};
  static constexpr Weight third{"conv.third", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> larger{"larger"};
  static constexpr auto ports = heddle::ports(hidden, first, second, third, bias, larger);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
