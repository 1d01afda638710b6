// VAEDecodeAudio and VAEEncodeAudio: sound of a latent, and a latent of sound, by an audio
// autoencoder (ltxv_audio_nodes.h). Stateless.
#pragma once

#include <heddle/node.hpp>

#include <optional>

namespace heddle::vae {

// The LATENT of an AUDIO, at the autoencoder's rate, in two channels. Throws where it is none, or
// the autoencoder none of sound.
Value encoded_audio(Context& ctx, const Value& given, const Value& value);
// Tells of its call; the shape of the latent's samples, where that is known.
std::optional<Shape> tell_encoded_audio(Infer& question, const Input<Value>& audio,
                                        const Input<Value>& vae);

// As loud as that of ComfyUI: where five times the deviation of its points exceeds 1, they are
// divided by it.
struct VAEDecodeAudio {
  static constexpr Info info{"VAEDecodeAudio", 1, "VAE Decode Audio", "latent/audio",
                             "Makes sound of a latent, or of that beside a latent of pictures."};
  static constexpr Input<Value> samples{"samples", 0, "The latent to decode.", "LATENT"};
  static constexpr Input<Value> vae{"vae", 0, "Of VAELoader.", "VAE"};
  static constexpr Output<Value> audio{"AUDIO", 0, "", "AUDIO"};
  static constexpr auto ports = heddle::ports(samples, vae, audio);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// At the autoencoder's rate, in two channels: one is taken twice, of more the first two.
struct VAEEncodeAudio {
  static constexpr Info info{"VAEEncodeAudio", 1, "VAE Encode Audio", "latent/audio",
                             "Makes a latent of sound."};
  static constexpr Input<Value> audio{"audio", 0, "The sound to encode.", "AUDIO"};
  static constexpr Input<Value> vae{"vae", 0, "Of VAELoader.", "VAE"};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(audio, vae, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// The same for LTX 2, whose encoder reads the sound's spectra (sound_spectrum.h).
struct LTXVAudioVAEEncode {
  static constexpr Info info{"LTXVAudioVAEEncode", 1, "LTXV Audio VAE Encode", "model/latent/ltxv",
                             "Makes a latent of sound."};
  static constexpr Input<Value> audio{"audio", 0, "The sound to encode.", "AUDIO"};
  static constexpr Input<Value> audio_vae{
      "audio_vae", Widget{.extra = R"({"display_name": "Audio VAE"})", .type = "VAE"},
      "Of LTXVAudioVAELoader or VAELoader."};
  static constexpr Output<Value> latent{"Audio Latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(audio, audio_vae, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::vae
