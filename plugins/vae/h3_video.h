// plugins/vae/h3_video.h - MiniMax H3's video autoencoder: two families, one for each side, of
// single clips. Source of the architecture: AutoencoderKLMiniMaxH3 of diffusers, by the publishers
// of the model. The decoder is a transformer over all cells of a clip, the encoder convolutions.
//
// "vae.decoder"  input z (B, C, T, h, w) or (B, C, h, w) loop-invariant -> image (B (4 T - 3), 16
// h,
//                16 w, 3) f32, about [-1, 1], not clamped
// "vae.encoder"  input image (T, H, W, 3) loop-invariant, one clip, in [-1, 1]; H and W multiples
//                of 16 -> mean, logvar (1, C, (T - 1) / 4 + 1, H / 16, W / 16) f32
//
// Tiles of clips are rounds that have nothing to do with each other (heddle/abi/stages.h).
// Settings: those of such rounds, family, scaling_factor, shift_factor, latent_channels, downscale
// (16), pixel_channels, latent_means and latent_deviations, and `clips`, how a video is cut into
// clips (h3_clips.h of plugins/blocks): a record of ints, frames (of a clip, 17), cells (of the
// latent, 5), shared (cells of the next clip that a decoder is given, 2), dropped (cells at a
// video's end, 3), tile and tile_overlap (pixels). Stateless, any thread.
#pragma once

#include "h3_video_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct AutoencoderH3Decoder {
  static constexpr Family family{"minimax_h3_vae", "vae.decoder", 1,
                                 "Autoencoder of MiniMax H3: latent to video"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AutoencoderH3Encoder {
  static constexpr Family family{"minimax_h3_vae", "vae.encoder", 1,
                                 "Autoencoder of MiniMax H3: video to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
