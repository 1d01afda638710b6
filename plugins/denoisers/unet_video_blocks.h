// plugins/denoisers/unet_video_blocks.h - what Stable Video Diffusion's UNet has between the blocks
// of one for pictures (unet_blocks.h): residual blocks and transformers that see all frames of a
// video. Source: Blattmann et al. 2023. Frames are axis 0. Blocks are pure and have no instance;
// any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// hidden (F, H, W, C), mod (1, 1|F, C) -> hidden (plugins/blocks/frame_residual.h). `mix`: the
// share of what was there.
struct VideoResnet {
  static constexpr Info info{"unet.video.resnet", 1,  "UNet residual block over frames",
                             "blocks/unet",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> mod{"mod"};
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
      heddle::ports(hidden, mod, groups, eps, norm1, norm1_bias, conv1, conv1_bias, norm2,
                    norm2_bias, conv2, conv2_bias, mix, out);
  static void execute(Context& ctx);
};

// Where each frame stands in its video, for tokens (F, S, D): -> places (F, 1, D), two linear
// layers of waves of its number. Of the latent x (F, ...) it reads the shape.
struct VideoPlaces {
  static constexpr Info info{"unet.video.places", 1,  "UNet places of frames",
                             "blocks/unet",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Output<Tensor> out{"places"};
  static constexpr auto ports = heddle::ports(x, max_period, in, in_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// Keys and values of what the first frame is told, for all frames: context (1|F, T, W) -> kv (1, T,
// 2 D).
struct VideoContext {
  static constexpr Info info{"unet.video.context", 1,  "UNet keys and values for a video",
                             "blocks/unet",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Weight kv{"kv.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"kv"};
  static constexpr auto ports = heddle::ports(context, kv, out);
  static void execute(Context& ctx);
};

// tokens (F, S, D), places (F, 1, D), kv (1, T, 2 D) -> tokens: with the places, an MLP, attention
// of a place in all frames to each other, attention to what is told, and another MLP; of the result
// and the tokens that were there a mean, in which `mix` is the share of these.
struct VideoTransformer {
  static constexpr Info info{
      "unet.video.transformer", 1, "UNet transformer block over frames", "blocks/unet", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> places{"places"};
  static constexpr Input<Tensor> kv{"kv"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm_in{"norm_in.weight"};
  static constexpr Weight norm_in_bias{"norm_in.bias"};
  static constexpr Weight up_in{"mlp_in.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_in_bias{"mlp_in.up.bias"};
  static constexpr Weight down_in{"mlp_in.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_in_bias{"mlp_in.down.bias"};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight text_q{"text.q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_proj{"text.proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_proj_bias{"text.proj.bias"};
  static constexpr Weight norm3{"norm3.weight"};
  static constexpr Weight norm3_bias{"norm3.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Weight mix{"mix"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(
      tokens, places, kv, heads, eps, norm_in, norm_in_bias, up_in, up_in_bias, down_in,
      down_in_bias, norm1, norm1_bias, qkv, proj, proj_bias, norm2, norm2_bias, text_q, text_proj,
      text_proj_bias, norm3, norm3_bias, up, up_bias, down, down_bias, mix, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
