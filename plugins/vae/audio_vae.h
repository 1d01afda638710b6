// plugins/vae/audio_vae.h - LTX 2's audio autoencoder: two families, one for each side, between
// latents and spectra on a mel scale. The vocoder (vocoder.h) makes sound of a spectrum.
//
// "audio_vae.decoder"  input z (B, C, T, M) loop-invariant, in the diffusion model's units -> mel
//                      (B, 2, 4 T - 3, 4 M) f32, a logarithm of how loud each band is on the left
//                      and on the right
// "audio_vae.encoder"  input mel (B, 2, T, M) loop-invariant -> mean (B, C, (T - 1) / 4 + 1, M / 4)
//                      f32 in the diffusion model's units
//
// Mean and deviation of each number of a latent's frame are in the file, and applied inside.
// Settings: family, latent_channels, mel_bins, sample_rate, mel_hop_length (samples from one frame
// of a spectrum to the next), mel_window (samples that a frame is made of). Stateless, any thread.
#pragma once

#include "audio_vae_blocks.h"

#include <heddle/model.hpp>

namespace heddle::vae {

struct AudioVaeDecoder {
  static constexpr Family family{"ltx2_audio_vae", "audio_vae.decoder", 1,
                                 "Audio autoencoder of LTX 2: latent to spectrum"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

struct AudioVaeEncoder {
  static constexpr Family family{"ltx2_audio_vae", "audio_vae.encoder", 1,
                                 "Audio autoencoder of LTX 2: spectrum to latent"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::vae
