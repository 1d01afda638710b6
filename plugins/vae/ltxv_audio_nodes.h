// LTXVAudioVAEDecode: the sound of a latent of LTX 2 or of MiniMax H3. An audio autoencoder is a
// VAE with the field audio, a record. Of one whose decoder makes spectra: vocoder (MODEL);
// sample_rate, mel_bins and hop_length, ints, of these; channels, of its latents. Of one whose
// decoder makes sound: sample_rate, channels, hop_length (samples for a frame of a latent), and
// latent_means and latent_deviations, lists.
#pragma once

#include <heddle/node.hpp>

#include <optional>
#include <span>

namespace heddle::vae {

// Sound (B, S, n) f32.
struct MadeSound {
  Tensor waveform;
  std::int64_t rate = 0;  // samples a second
};
// Of a latent of sound (B, C, frames, bands) or (B, C, S, frames), or of pictures and sound. Throws
// where vae is no autoencoder of sound, or the latent none of its latents.
MadeSound decoded_sound(Context& ctx, const Value& vae, const Value& latent);
// Tells of its calls; the shape of the sound, where that is known.
std::optional<Shape> tell_decoded_sound(Infer& question, const Value& vae, const Shape& samples);
// The latent (B, C, S, frames), or of spectra (B, C, frames, bands), of sound (B, S, n) at the
// autoencoder's rate, in host memory, in the diffusion model's units. Throws where it has no
// encoder.
Tensor encoded_sound(Context& ctx, const Value& vae, std::span<const float> points,
                     const Shape& shape);
// Tells of its call; the shape of the latent, where that is known.
std::optional<Shape> tell_encoded_sound(Infer& question, const Value& vae, const Shape& sound);

struct LTXVAudioVAEDecode {
  static constexpr Info info{"LTXVAudioVAEDecode", 1, "LTXV Audio VAE Decode", "model/latent/ltxv",
                             "Makes sound of a latent, or of that beside a latent of pictures."};
  static constexpr Input<Value> samples{"samples", 0, "The latent to decode.", "LATENT"};
  static constexpr Input<Value> audio_vae{
      "audio_vae", Widget{.extra = R"({"display_name": "Audio VAE"})", .type = "VAE"},
      "Of LTXVAudioVAELoader or VAELoader."};
  static constexpr Output<Value> audio{"Audio", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(samples, audio_vae, audio);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
