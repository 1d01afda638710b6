// Latents of sound: an AUDIO as audio autoencoders take it, and the encoder of one that reads sound
// itself, not its spectra (the VAE's record "audio" has no vocoder). One call's thread.
#pragma once

#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::vae {

// Samples a second that an audio autoencoder takes. Throws with the port's name where the value is
// none.
std::int64_t sound_rate(const Value& vae, const std::string& port);
// Whether the value is an audio autoencoder that reads sound itself.
bool reads_waves(const Value& vae);

struct StereoSound {
  Shape shape;  // (B, 2, n)
  std::pmr::vector<float> points;
};
// An AUDIO at a rate, in two channels: one is taken twice, of more the first two. most: of its
// items. Throws with the port's name where it is none, or empty.
StereoSound stereo_sound(Context& ctx, const Value& audio, const std::string& port,
                         std::int64_t rate, std::pmr::memory_resource& memory,
                         std::int64_t most = INT64_MAX);
// By the shape of its waveform; none where it is no sound.
std::optional<Shape> stereo_shape(const Shape& waveform, std::int64_t from, std::int64_t to,
                                  std::int64_t most = INT64_MAX);

// Mean or deviation ("latent_means", "latent_deviations") of each channel of latents, (1, C, 1, 1)
// f32; none where the decoder knows them itself.
Tensor sound_statistics(Context& ctx, const Value& vae, const char* key);
// The latent (B, C, 2, T) of sound (B, 2, n) at the autoencoder's rate, in the diffusion model's
// units. REQUIRES: reads_waves(vae), with an encoder.
Tensor encoded_waves(Context& ctx, const Value& vae, std::span<const float> points,
                     const Shape& shape);
// The same by shapes, with the call; none where there is no encoder.
std::optional<Shape> tell_encoded_waves(Infer& question, const Value& vae, const Shape& sound);

}  // namespace heddle::vae
