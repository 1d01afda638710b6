// LTXVAudioVAEDecode: the sound of a latent of LTX 2. An audio autoencoder is a VAE with the field
// audio, a record: vocoder (MODEL); sample_rate, mel_bins and hop_length, ints, of the spectra that
// its decoder makes; channels, of its latents.
#pragma once

#include <heddle/node.hpp>

namespace heddle::vae {

struct LTXVAudioVAEDecode {
  static constexpr Info info{"LTXVAudioVAEDecode", 1, "LTXV Audio VAE Decode", "model/latent/ltxv",
                             "Makes sound of a latent, or of that beside a latent of pictures."};
  static constexpr Input<Value> samples{"samples", 0, "The latent to decode.", "LATENT"};
  static constexpr Input<Value> audio_vae{
      "audio_vae", Widget{.extra = R"({"display_name": "Audio VAE"})", .type = "VAE"},
      "Of LTXVAudioVAELoader."};
  static constexpr Output<Value> audio{"Audio", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(samples, audio_vae, audio);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
