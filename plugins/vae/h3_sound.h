// plugins/vae/h3_sound.h - MiniMax H3's audio autoencoder: two families, one for each side, between
// latents and sound itself. Source of the architecture: AutoencoderKLMiniMaxH3Audio of diffusers,
// by the publishers of the model.
//
// "audio_vae.decoder"  input z (B, C, S, T) or (B, C, T) loop-invariant -> waveform (B, S, 800 T)
//                      f32 in [-1, 1]; S channels of sound, which are coded apart
// "audio_vae.encoder"  input waveform (B, S, n) loop-invariant, at sample_rate -> mean (B, C, S, T)
//                      f32, T = n / 800, rounded up
//
// Latents are in the autoencoder's units; settings latent_means and latent_deviations tell those of
// the diffusion model. Further settings: family, latent_channels, sample_rate, hop (800), and
// makes_sound (true: there is no spectrum between). Stateless, any thread.
#pragma once

#include "h3_sound_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct H3SoundDecoder {
  static constexpr Family family{"minimax_h3_audio_vae", "audio_vae.decoder", 1,
                                 "Audio autoencoder of MiniMax H3: latent to sound"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct H3SoundEncoder {
  static constexpr Family family{"minimax_h3_audio_vae", "audio_vae.encoder", 1,
                                 "Audio autoencoder of MiniMax H3: sound to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
