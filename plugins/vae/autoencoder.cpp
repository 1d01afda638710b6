#include "plugins/vae/autoencoder.h"

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>
#include <limits>

namespace heddle::vae {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr std::int64_t kUsualDownscale = 8;  // pixels of a side for each latent cell

Span middle(std::int64_t size, std::int64_t downscale) {
  const std::int64_t rest = size % downscale;
  return {rest / 2, rest / 2 + size - rest};
}

}  // namespace

Autoencoder::Autoencoder(const Value& vae)
    : scale(vae.get<double>("scale", 1)),
      shift(vae.get<double>("shift", 0)),
      channels(vae.get<std::int64_t>("channels", 0)),
      downscale(vae.get<std::int64_t>("downscale", kUsualDownscale)) {
  if (!(scale != 0))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: its latent scale is 0. Check scaling_factor in the file's metadata or "
                "config.");
  if (downscale < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: its downscale is " + std::to_string(downscale) + ", it must be 1 or more");
}

std::optional<Autoencoder> usable(const Value& vae) {
  try {
    return Autoencoder(vae);
  } catch (const Error&) {
    return {};
  }
}

Value model_of(const Value& vae, const char* side) {
  if (vae.get<bool>("pixel_space", false)) return {};
  const Value model = vae.field(side);
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string("vae: this autoencoder's file has no ") + side +
                                           ". Load a file that has one (VAELoader).");
}

Tensor samples_of(const Value& latent, const Autoencoder& autoencoder) {
  const Tensor samples = latent.get<Tensor>("samples", {});
  if (!samples)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: this latent holds no samples. Link a LATENT.");
  if (samples.rank() != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "samples: this autoencoder decodes latents of 4 axes "
                "(batch, channels, height, width), these have " +
                    std::to_string(samples.rank()));
  if (autoencoder.channels != 0 && samples.size(1) != autoencoder.channels)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: they have " + std::to_string(samples.size(1)) +
                                             " channels, the autoencoder takes " +
                                             std::to_string(autoencoder.channels) +
                                             ". Load the autoencoder that belongs to the model.");
  return samples;
}

Tensor raw_of(Context& ctx, const Tensor& samples, const Value& latent,
              const Autoencoder& autoencoder) {
  if (!latent.get<bool>("scaled", false)) return ops::contiguous(ctx, samples);
  return ops::scale_clamp(ctx, samples,
                          {1 / autoencoder.scale, autoencoder.shift, -kUnlimited, kUnlimited});
}

CoveredPart covered_part(const Shape& picture, const Autoencoder& autoencoder) {
  if (picture.size() != 4 || picture[3] < kColours)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "pixels: a picture is (batch, height, width, 3 or more channels)");
  const CoveredPart part{middle(picture[1], autoencoder.downscale),
                         middle(picture[2], autoencoder.downscale)};
  if (part.rows.size() == 0 || part.columns.size() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "pixels: " + std::to_string(picture[2]) + " x " + std::to_string(picture[1]) +
                    " are less than one latent cell of " + std::to_string(autoencoder.downscale) +
                    " pixels. Give a larger picture.");
  return part;
}

Tensor covered_by_cells(const Tensor& picture, const Autoencoder& autoencoder) {
  const CoveredPart part = covered_part(picture.shape(), autoencoder);
  return picture.slice(1, part.rows.begin, part.rows.end)
      .slice(2, part.columns.begin, part.columns.end)
      .slice(3, 0, kColours);
}

Tensor decoded(Context& ctx, const Value& decoder, const Tensor& z) {
  if (!decoder) return ops::cast(ctx, z.permute({0, 2, 3, 1}), HEDDLE_F32);
  return call_model(ctx, decoder, Record().set("z", value_of(z)).value()).get<Tensor>("image", {});
}

Tensor mean_of(Context& ctx, const Value& encoder, const Tensor& picture) {
  const Tensor centred = ops::scale_clamp(ctx, picture, {2, -1, -kUnlimited, kUnlimited});
  if (!encoder) return ops::cast(ctx, centred.permute({0, 3, 1, 2}), HEDDLE_F32);
  const Value encoded = call_model(ctx, encoder, Record().set("image", value_of(centred)).value());
  return encoded.get<Tensor>("mean", {});
}

Record latent_of(Context& ctx, const Tensor& mean, const Autoencoder& autoencoder) {
  const double scale = autoencoder.scale, offset = -autoencoder.shift * autoencoder.scale;
  const Tensor scaled = ops::scale_clamp(ctx, mean, {scale, offset, -kUnlimited, kUnlimited});
  Record latent;
  latent.set("samples", value_of(scaled)).set("scaled", value_of(true));
  return latent;
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count = checked_product({count, size}, "the picture");
  return count;
}

}  // namespace heddle::vae
