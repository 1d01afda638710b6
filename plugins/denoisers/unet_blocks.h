// plugins/denoisers/unet_blocks.h - the block types of Stable Diffusion's UNets, written down as
// programs over the op catalogue. Sources of the architecture: Rombach et al. 2022 (latent
// diffusion), Podell et al. 2023 (SDXL). Inside, pictures are (B, H, W, C), tokens (B, H W, C);
// the latent's (B, C, H, W) is turned on the way in and out. Blocks are pure and have no instance;
// any thread.
#pragma once

#include <heddle/node.hpp>

#include "unet_tiles.h"
#include "unet_tome.h"

namespace heddle::denoisers {

// timestep (N) [, y (1|B, P)] [, sizes (1|B, n)] [, level (1|B) i32] [, more (1, D)] -> vector (N,
// 1|B, D) f32, with SiLU already, as all that read it want it: the timestep's embedding plus that
// of the pooled text with n numbers behind it (sides of the picture and the like), each as
// `size_waves` waves, plus the row of `levels` that `level` names. `more` is added to them.
struct UnetVector {
  static constexpr Info info{"unet.vector", 1,  "UNet timestep, pooled text and sizes",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Input<Tensor> y{"y", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> sizes{"sizes", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> level{"level", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> more{"more", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> size_waves{"size_waves", Widget{.number = 256}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Weight label_in{"label.in.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight label_in_bias{"label.in.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight label_out{"label.out.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight label_out_bias{"label.out.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight levels{"levels.weight", HEDDLE_USE_TABLE, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports = heddle::ports(
      timestep, y, sizes, level, more, size_waves, max_period, time_in, time_in_bias, time_out,
      time_out_bias, label_in, label_in_bias, label_out, label_out_bias, levels, out);
  static void execute(Context& ctx);
};

// x (B, C, H, W) [, concat (1|B, C', H, W), behind its channels] -> hidden (B, H, W, D).
struct UnetIn {
  static constexpr Info info{"unet.in",     1,  "UNet latent input",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> concat{"concat", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(x, concat, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) [, skip (B, H, W, C'), behind its channels], mod (1, 1|B, D) -> (B, H, W, D).
struct UnetResnet {
  static constexpr Info info{"unet.resnet", 1,  "UNet residual block",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> skip{"skip", HEDDLE_PORT_OPTIONAL};
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
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, skip, mod, groups, eps, norm1, norm1_bias, conv1, conv1_bias, norm2,
                    norm2_bias, conv2, conv2_bias, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> tokens (B, H W, D). Files hold the projection as a matrix or as a 1x1
// filter; the slot of one of the two forms is filled.
struct UnetTokensIn {
  static constexpr Info info{"unet.tokens_in", 1,  "UNet transformer input",
                             "blocks/unet",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_filter{"proj.filter", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports =
      heddle::ports(hidden, groups, eps, norm, norm_bias, proj, proj_filter, proj_bias, out);
  static void execute(Context& ctx);
};

// tokens (B, H W, D), hidden (B, H, W, C) -> hidden plus their projection.
struct UnetTokensOut {
  static constexpr Info info{"unet.tokens_out", 1,  "UNet transformer output",
                             "blocks/unet",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_filter{"proj.filter", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(tokens, hidden, proj, proj_filter, proj_bias, out);
  static void execute(Context& ctx);
};

// The keys and values of a text, which are the same in all steps: context (1|B, T, W) -> kv (B, T,
// 2 D). Of the latent x (B, ...) it reads the shape. values_of (1|B, T, W): what values are made
// of, where that is not what keys are made of.
struct UnetContext {
  static constexpr Info info{"unet.context", 1,  "UNet keys and values of the text",
                             "blocks/unet",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> values_of{"values_of", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight kv{"kv.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"kv"};
  static constexpr auto ports = heddle::ports(context, x, values_of, kv, out);
  static void execute(Context& ctx);
};

// tokens (B, S, D), kv (B, T, 2 D) of the text -> tokens: attention to each other, to the text, and
// an MLP gated by GELU. attended (B, S, D): what the attention to each other made, where it stands
// in blocks of its own (unet_self.h); the slots of that one are then empty. crossed (B, S, D): what
// the attention to the text made, where both stand in blocks of their own (unet_adapters.h).
// latent: where there are tiles (unet_tiles.h). cells: where tokens are merged (unet_tome.h).
struct UnetTransformer : TilePorts, MergePorts {
  static constexpr Info info{"unet.transformer", 1,  "UNet transformer block",
                             "blocks/unet",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> kv{"kv", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> attended{"attended", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> crossed{"crossed", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm1{"norm1.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm1_bias{"norm1.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj_bias{"proj.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm2{"norm2.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm2_bias{"norm2.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight text_q{"text.q.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight text_proj{"text.proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight text_proj_bias{"text.proj.bias", HEDDLE_USE_BIAS};
  static constexpr Weight norm3{"norm3.weight"};
  static constexpr Weight norm3_bias{"norm3.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias", HEDDLE_USE_BIAS};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias", HEDDLE_USE_BIAS};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(
      tokens, kv, attended, crossed, heads, eps, norm1, norm1_bias, qkv, proj, proj_bias, norm2,
      norm2_bias, text_q, text_proj, text_proj_bias, norm3, norm3_bias, up, up_bias, down,
      down_bias, latent, tile, swap, depth, deepens, draw, cells, ratio, corner, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, C) -> (B, (H + 1) / 2, (W + 1) / 2, C).
struct UnetDown {
  static constexpr Info info{"unet.down",   1,  "UNet downsampling",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, h, w, C) -> (B, H, W, C), the size of `like` (B, H, W, C'), which is 2 h and 2 w or
// one less, but where the way down was shrunk (unet_fit.h).
struct UnetUp {
  static constexpr Info info{"unet.up", 1, "UNet upsampling", "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> like{"like", HEDDLE_PORT_SHAPE};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, like, conv, conv_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, H, W, D) -> out (B, C, H, W), in the type of the latent x.
struct UnetOut {
  static constexpr Info info{"unet.out", 1, "UNet output", "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> groups{"groups", Widget{.number = 32}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight conv_bias{"conv.bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports =
      heddle::ports(hidden, x, groups, eps, norm, norm_bias, conv, conv_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
