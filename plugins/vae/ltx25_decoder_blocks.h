// plugins/vae/ltx25_decoder_blocks.h - the block types of LTX 2.5's decoder of videos
// (ltx25_decoder.h). Shapes: B videos, T frames, H x W cells, C channels, d elements of a head.
// Hidden states are f32 between blocks; only operands of matrix products are in the compute type.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (B, C, F, h, w) or (B, C, h, w), a frame each, in the diffusion model's units -> hidden
// (B, F + more, h, w, C'): the last frame stands `more` times behind itself. mean and deviation
// (C): the autoencoder's units.
struct Ltx25LatentIn {
  static constexpr Info info{"ltx25.vae_latent_in", 1,  "LTX 2.5 VAE latent input",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<std::int64_t> more{"more", Widget{.number = 2}};
  static constexpr Weight mean{"statistics.mean"};
  static constexpr Weight deviation{"statistics.deviation"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, more, mean, deviation, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> the same: attention of each cell to `frames` x `rows` x `columns` cells
// around it (neighbour_attention.h), and a gated MLP. Queries and keys are normalised and turn with
// frame, row and column. Of a piece of a video (B 1) the frames are those of `kept`, where it is
// there, and of hidden: T of them. The first `before` and the last `behind` of them are seen by the
// others, and not made; keeps: the last `keep` of them, or one for 0.
struct Ltx25VaeLayer {
  static constexpr Info info{"ltx25.vae_layer", 1,  "LTX 2.5 VAE layer",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> frames{"frames", Widget{.number = 3}};
  static constexpr Input<std::int64_t> rows{"rows", Widget{.number = 7}};
  static constexpr Input<std::int64_t> columns{"columns", Widget{.number = 7}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> before{"before", Widget{}};
  static constexpr Input<std::int64_t> behind{"behind", Widget{}};
  static constexpr Input<std::int64_t> keep{"keep", Widget{}};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, frames, rows, columns, eps, theta, kept, before, behind, keep, norm1,
                    qkv, qkv_bias, q_norm, k_norm, proj, proj_bias, norm2, up, down, out, keeps);
  static void execute(Context& ctx);
};

// As Ltx25VaeLayer, of pixels: a projection of context (B, T, H, W, C'), of hidden's frames, is
// added before, also to what is kept, and both
// norms are scaled and shifted by mod (7 C) of Ltx25VaeLevel plus table (7, C), of whose rows the
// first two are of the attention and the fourth and fifth of the MLP.
struct Ltx25PixelLayer {
  using L = Ltx25VaeLayer;
  static constexpr Info info{
      "ltx25.vae_pixel_layer", 1, "LTX 2.5 VAE layer of pixels", "blocks/vae", "",
      HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Weight context_weight{"context.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight context_bias{"context.bias"};
  static constexpr Weight table{"table"};
  static constexpr auto ports = heddle::ports(
      L::hidden, context, mod, L::frames, L::rows, L::columns, L::eps, L::theta, L::kept, L::before,
      L::behind, L::keep, context_weight, context_bias, table, L::norm1, L::qkv, L::qkv_bias,
      L::q_norm, L::k_norm, L::proj, L::proj_bias, L::norm2, L::up, L::down, L::out, L::keeps);
  static void execute(Context& ctx);
};

// Frames (1, T, H, W, C) of a piece of a video, and before them those of `kept`, without the last
// `late` of them, which `keeps` has, or the last one for 0.
struct Ltx25VaeDelay {
  static constexpr Info info{"ltx25.vae_delay", 1,  "LTX 2.5 VAE delay of frames",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> piece{"piece"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> late{"late", Widget{}};
  static constexpr Output<Tensor> out{"frames"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(piece, kept, late, out, keeps);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> (B, T', H `rows`, W `columns`, C'): each cell becomes `frames` x `rows`
// x `columns`. Of two frames for each the first is left out where a video `begins`, as its first
// frame stands for one; so are the last `fewer` frames.
struct Ltx25VaeUpsample {
  static constexpr Info info{"ltx25.vae_upsample", 1,  "LTX 2.5 VAE upsampling",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> frames{"frames", Widget{.number = 2}};
  static constexpr Input<std::int64_t> rows{"rows", Widget{.number = 2}};
  static constexpr Input<std::int64_t> columns{"columns", Widget{.number = 2}};
  static constexpr Input<std::int64_t> fewer{"fewer", Widget{.number = 0}};
  static constexpr Input<bool> begins{"begins", Widget{.number = 1}};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, frames, rows, columns, fewer, begins, weight, bias, out);
  static void execute(Context& ctx);
};

// What the layers of pixels are told of the noise level 1: mod (7 C) f32.
struct Ltx25VaeLevel {
  static constexpr Info info{"ltx25.vae_level", 1,  "LTX 2.5 VAE noise level",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<double> level{"level", Widget{.number = 1000}};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight middle{"middle.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight middle_bias{"middle.bias"};
  static constexpr Weight last{"last.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"last.bias"};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports =
      heddle::ports(level, in, in_bias, middle, middle_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// noise (B, T, H, W, N) -> hidden (B, T, H, W, C); context, of which the shape is read, says of how
// many cells.
struct Ltx25NoiseIn {
  static constexpr Info info{"ltx25.vae_noise_in", 1,  "LTX 2.5 VAE noise input",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> noise{"noise"};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(noise, context, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> image (B T, `side` H, `side` W, 3) f32.
struct Ltx25ImageOut {
  static constexpr Info info{"ltx25.vae_image_out", 1,  "LTX 2.5 VAE picture output",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> side{"side", Widget{.number = 4}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"image"};
  static constexpr auto ports = heddle::ports(hidden, side, eps, norm, weight, bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
