// What nodes that call an autoencoder have in common: what they read of a VAE value
// (heddle/diffusion/values.h), and which part of a picture or a latent its models take. One call's
// thread.
#pragma once

#include <heddle/node.hpp>

#include <optional>
#include <string>
#include <vector>

namespace heddle::vae {

inline constexpr std::int64_t kColours = 3;

// Throws HEDDLE_INVALID_ARGUMENT for a scale or a deviation of 0, or a downscale below 1, or other
// than a mean and a deviation for each channel.
struct Autoencoder {
  explicit Autoencoder(const Value& vae);
  double scale, shift;
  std::vector<float> means, deviations;  // of each channel, instead of these two; or empty
  std::int64_t channels, downscale;      // channels: 0, not known
  std::int64_t colours;                  // of pictures: 3, or 4 with alpha

  // Whole latent cells of a side of `pixels`.
  std::int64_t cells(std::int64_t pixels) const { return pixels / downscale; }
};

// None where reading the value throws: the run says it, with the node's name.
std::optional<Autoencoder> usable(const Value& vae);

// Its "decoder" or "encoder"; empty where latents are pictures. Throws where its file has none, or
// is one of sound.
Value model_of(const Value& vae, const char* side);

// Throws where latents of so many channels are not the autoencoder's.
void check_channels(std::int64_t channels, const Autoencoder& autoencoder);

// The samples of a latent: (B, C, h, w), with the autoencoder's channels.
Tensor samples_of(const Value& latent, const Autoencoder& autoencoder);

// What the decoder takes of samples, or of a part of them: without gaps, in its own units.
Tensor raw_of(Context& ctx, const Tensor& samples, const Value& latent,
              const Autoencoder& autoencoder);

// A part of a side, [begin, end).
struct Span {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
// The part of a picture that whole latent cells cover, in the middle. Throws where that is none, or
// the shape is no picture's.
struct CoveredPart {
  Span rows, columns;
};
CoveredPart covered_part(const Shape& picture, const Autoencoder& autoencoder);
// Its red, green and blue, and alpha where the autoencoder has it: 1 where the picture has none.
Tensor covered_by_cells(Context& ctx, const Tensor& picture, const Autoencoder& autoencoder);

// What the decoder makes of latents in its own units: pictures (B, H, W, colours) from -1 to 1.
// `decoder`: of model_of(), as below.
Tensor decoded(Context& ctx, const Value& decoder, const Tensor& z);

// The encoder's mean for pictures (B, H, W, colours) from 0 to 1, in its own units.
Tensor mean_of(Context& ctx, const Value& encoder, const Tensor& picture);

// A LATENT of such means.
Record latent_of(Context& ctx, const Tensor& mean, const Autoencoder& autoencoder);

// Numbers of a shape; throws where they exceed 64 bits.
std::int64_t count_of(const Shape& shape);

}  // namespace heddle::vae
