// plugins/vae/autoencoder_ltxv_blocks.h - the block types of LTX-Video's autoencoder. Source of the
// architecture: AutoencoderKLLTXVideo of diffusers, by the publishers of the model. Shapes: B
// videos, F frames of the latent, T frames, H x W pixels or cells. Filters are (O, C, 3, R, S): a
// convolution reads a frame and its neighbours, or, where it is causal, the two frames before it
// (ltxv_filter.h). `mirrors`: what is around a frame are its own rows and columns, else zeros.
// `framed`: of a piece of a video, which begins and ends with the frames that the convolution reads
// besides (LtxvVaeFrames); T is then what is left of the frames without these, two less.
// Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

// z (B, C, F, h, w) or (B, C, h, w), a frame each, in the diffusion model's units -> hidden
// (B, F, h, w, C'). mean and deviation (C): the autoencoder's units. Where there is noise, of z's
// shape, the latent is (1 - noise_share) z + noise_share noise.
struct LtxvVaeLatentIn {
  static constexpr Info info{"ltxv.vae_latent_in", 4,  "LTX-Video VAE latent input",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> z{"z"};
  static constexpr Input<Tensor> noise{"noise", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> noise_share{"noise_share", Widget{}};
  static constexpr Input<bool> causal{"causal", Widget{}};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<bool> framed{"framed", Widget{}};
  static constexpr Weight mean{"statistics.mean"};
  static constexpr Weight deviation{"statistics.deviation"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(z, noise, noise_share, causal, mirrors, framed, mean,
                                              deviation, conv, bias, out);
  static void execute(Context& ctx);
};

// image (T, 4 H, 4 W, 3) in [-1, 1], one video -> hidden (1, T, H, W, C): squares of 4 x 4 pixels
// are a cell.
struct LtxvVaeImageIn {
  static constexpr Info info{"ltxv.vae_image_in", 4,  "LTX-Video VAE picture input",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<bool> framed{"framed", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(image, mirrors, framed, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> (B, T, H, W, C'). The shortcut and its norm are there where C' is not
// C. embedding (4 C) of LtxvVaeTime, to which the table (4, C) is added: shift and scale behind the
// first norm, and behind the second. noise (N, H, W): of its planes `plane` and the one behind it
// are added, times a number for each channel, behind the first and the second convolution.
struct LtxvVaeResnet {
  static constexpr Info info{"ltxv.vae_resnet", 3,  "LTX-Video VAE residual block",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> embedding{"embedding", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> noise{"noise", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> plane{"plane", Widget{}};
  static constexpr Input<bool> causal{"causal", Widget{}};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-8}};
  static constexpr Input<double> shortcut_eps{"shortcut_eps", Widget{.number = 1e-6}};
  static constexpr Weight conv1{"conv1.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias1{"conv1.bias"};
  static constexpr Weight conv2{"conv2.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias2{"conv2.bias"};
  static constexpr Weight table{"table", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight scale1{"noise1", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight scale2{"noise2", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm{"shortcut.norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"shortcut.norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(
      hidden, embedding, noise, plane, causal, mirrors, eps, shortcut_eps, conv1, bias1, conv2,
      bias2, table, scale1, scale2, norm, norm_bias, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// A piece of a video (frames along `axis`, 1 video) with the neighbours of its first and last
// frame: before it what the piece before `kept`, or `before` times its first frame, behind it
// `behind` times its last one. keeps: the last `keep` frames of all these.
struct LtxvVaeFrames {
  static constexpr Info info{"ltxv.vae_frames", 1,  "LTX-Video VAE neighbouring frames",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> piece{"piece"};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> axis{"axis", Widget{.number = 1}};
  static constexpr Input<std::int64_t> before{"before", Widget{}};
  static constexpr Input<std::int64_t> behind{"behind", Widget{}};
  static constexpr Input<std::int64_t> keep{"keep", Widget{.number = 2}};
  static constexpr Output<Tensor> out{"frames"};
  static constexpr Output<Tensor> keeps{"keeps"};
  static constexpr auto ports = heddle::ports(piece, kept, axis, before, behind, keep, out, keeps);
  static void execute(Context& ctx);
};

// One half of a residual block of a piece: hidden (1, T + 2, H, W, C), framed -> (1, T, H, W, C'),
// a norm, SiLU and a convolution. nth: 0 or 1, which rows of the embedding and the table are its
// own. The second half adds `base` (1, at least from + T, H, W, C''), the framed input of the first
// one, from frame `from` on. The rest as of LtxvVaeResnet.
struct LtxvVaeHalf {
  static constexpr Info info{"ltxv.vae_half", 1,  "LTX-Video VAE half of a residual block",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> base{"base", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> embedding{"embedding", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> noise{"noise", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> nth{"nth", Widget{}};
  static constexpr Input<std::int64_t> from{"from", Widget{}};
  static constexpr Input<std::int64_t> plane{"plane", Widget{}};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-8}};
  static constexpr Input<double> shortcut_eps{"shortcut_eps", Widget{.number = 1e-6}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Weight table{"table", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight scale{"noise", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm{"shortcut.norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"shortcut.norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut{"shortcut.weight", HEDDLE_USE_CONV2D, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight shortcut_bias{"shortcut.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, base, embedding, noise, nth, from, plane, mirrors, eps, shortcut_eps,
                    conv, bias, table, scale, norm, norm_bias, shortcut, shortcut_bias, out);
  static void execute(Context& ctx);
};

// A noise level from 0 to 1, times `scale`, -> embedding (D) f32, D what of it the blocks read.
struct LtxvVaeTime {
  static constexpr Info info{"ltxv.vae_time", 1,  "LTX-Video VAE noise level",
                             "blocks/vae",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<double> level{"level", Widget{}};
  static constexpr Input<double> scale{"scale", Widget{.number = 1000}};
  static constexpr Input<double> max_period{"max_period", Widget{.number = 10000}};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Output<Tensor> out{"embedding"};
  static constexpr auto ports =
      heddle::ports(level, scale, max_period, in, in_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> (B, f T - f + 1, s H, s W, C'), f `frames` and s `side`: a convolution
// to f s s C' channels, of which each f s s are a block of f frames, s rows and s columns; what
// would be before the first frame is left out. residual: the input's own channels, spread the same
// way and repeated, are added. continues: of a piece that others were before: nothing is left out.
struct LtxvVaeUpsample {
  static constexpr Info info{"ltxv.vae_upsample", 4,  "LTX-Video VAE upsampling",
                             "blocks/vae",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> causal{"causal", Widget{}};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<bool> framed{"framed", Widget{}};
  static constexpr Input<bool> continues{"continues", Widget{}};
  static constexpr Input<std::int64_t> frames{"frames", Widget{.number = 2}};
  static constexpr Input<std::int64_t> side{"side", Widget{.number = 2}};
  static constexpr Input<bool> residual{"residual", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, causal, mirrors, framed, continues, frames,
                                              side, residual, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> (B, (T - 1) / 2 + 1, (H + 1) / 2, (W + 1) / 2, C), by a causal
// convolution.
struct LtxvVaeDownsample {
  static constexpr Info info{"ltxv.vae_downsample", 4,  "LTX-Video VAE downsampling",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<bool> framed{"framed", Widget{}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, mirrors, framed, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> (B, (T - 1) / f + 1, H / s, W / s, C'), f `frames` and s `side`: blocks
// of f frames, s rows and s columns of a causal convolution become channels, to which the means of
// groups of the input's own, gathered the same way, are added. The first frame counts f times.
struct LtxvVaeGather {
  static constexpr Info info{"ltxv.vae_gather", 3,  "LTX-Video VAE gathering",
                             "blocks/vae",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<bool> framed{"framed", Widget{}};
  static constexpr Input<std::int64_t> frames{"frames", Widget{.number = 2}};
  static constexpr Input<std::int64_t> side{"side", Widget{.number = 2}};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, mirrors, framed, frames, side, conv, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, H, W, C) -> image (B T, 4 H, 4 W, 3) f32. embedding (2 C) of LtxvVaeTime, to which
// the table (2, C) is added: shift and scale behind the norm.
struct LtxvVaeImageOut {
  static constexpr Info info{"ltxv.vae_image_out", 4,  "LTX-Video VAE picture output",
                             "blocks/vae",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> embedding{"embedding", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<bool> causal{"causal", Widget{}};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<bool> framed{"framed", Widget{}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-8}};
  static constexpr Weight table{"table", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> image{"image"};
  static constexpr auto ports =
      heddle::ports(hidden, embedding, causal, mirrors, framed, eps, table, conv, bias, image);
  static void execute(Context& ctx);
};

// hidden (1, F, h, w, D) -> mean (1, C, F, h, w) f32 in the diffusion model's units, and logvar
// (1, 1, F, h, w) f32, which all channels share. mean and deviation (C) as of LtxvVaeLatentIn.
struct LtxvVaeLatentOut {
  static constexpr Info info{"ltxv.vae_latent_out", 4,  "LTX-Video VAE latent output",
                             "blocks/vae",          "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<bool> mirrors{"mirrors", Widget{}};
  static constexpr Input<bool> framed{"framed", Widget{}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-8}};
  static constexpr Weight mean{"statistics.mean"};
  static constexpr Weight deviation{"statistics.deviation"};
  static constexpr Weight conv{"conv.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"conv.bias"};
  static constexpr Output<Tensor> out{"mean"};
  static constexpr Output<Tensor> logvar{"logvar"};
  static constexpr auto ports =
      heddle::ports(hidden, mirrors, framed, eps, mean, deviation, conv, bias, out, logvar);
  static void execute(Context& ctx);
};

}  // namespace heddle::vae
