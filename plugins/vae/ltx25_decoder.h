// plugins/vae/ltx25_decoder.h - LTX 2.5's decoder of videos, which draws them: layers in which each
// cell sees its neighbours make a context of a latent, in four stages that grow; others, told of
// it, make pixels of noise, in one step. The encoder in its file is that of LTX 2
// (autoencoder_ltxv.h), and so are latents.
//
// "vae.decoder"  input z (B, C, F, h, w) or (B, C, h, w) loop-invariant, in the diffusion model's
//                units, and cell_noise (B, T, S h, S w, N), T = 8 F - 7, of the setting
//                cell_noise, drawn by whoever calls (plugins/blocks/decoder_noise.h)
//                -> image (B T, 32 h, 32 w, 3) f32, about [-1, 1], not clamped
//
// Pieces of a video: each stage is a model of its own, and so are the layers of pixels. A cell sees
// frames before its own and behind it, so a layer keeps the last ones that it was given for the
// next piece, and makes its frames late, as does a stage of autoencoder_ltxv_builder.h, whose
// configurations, outputs and settings these have; z has the last frame `frames_behind` times more.
// Besides input cell_noise, of the piece's frames, and settings of `piece`: least, frames that a
// stage has to make of at first, before it makes them more, as the first frame sees as many as any;
// cut, the last ones that it makes of a video, which are of no use. A video's numbers are the same
// but for rounding: attention turns by places within a piece. Of the published file the layers of
// pixels make their frames 40 late, so they take 47 frames at first and then 8 at a time, and the
// stages before them 20 frames of the latent at first.
//
// Source of the architecture: LTX2VideoDiffusionDecoderModel of diffusers, by the publishers of the
// model; by their names ("decoder.diff_blocks.0.attn.qkv.weight"). Sizes are read off the tensors;
// strides and neighbourhoods stand in the file's metadata ("config", its record "vae.decoder":
// "upsamples", "stage_kernels", "stage5_kernel", "timestep_scale_multiplier"), else they are as
// published. An axis that is shorter than a neighbourhood is seen as a whole, where diffusers
// refuses it. Not more steps than one, not what is predicted otherwise than as pixels, no gates of
// residuals. Mean and deviation of each channel are in the file, and applied inside. Settings:
// family, latent_channels, downscale (32), frame_downscale (8), pixel_channels, cell_noise (a list:
// frames of a cell, S, N), piece_configs and frames_behind, statistics_means and
// statistics_deviations (lists). Stateless, any thread.
#pragma once

#include "ltx25_decoder_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct Ltx25Decoder {
  static constexpr Family family{"ltx25_vae", "vae.decoder", 1,
                                 "Decoder of LTX 2.5: latent to video, by one step of diffusion"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
