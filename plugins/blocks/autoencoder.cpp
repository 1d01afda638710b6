#include "plugins/blocks/autoencoder.h"

#include <algorithm>
#include <heddle/checked.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>
#include <limits>

#include "plugins/blocks/decoder_noise.h"

namespace heddle::vae {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr std::int64_t kUsualDownscale = 8;  // pixels of a side for each latent cell

std::vector<float> floats_of(const Value& list) {
  std::vector<float> floats;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    floats.push_back(float(list.item(i).as<double>()));
  return floats;
}

// A number for each channel of (B, C, h, w), or (B, C, T, h, w).
Tensor by_channel(Context& ctx, const std::vector<float>& numbers, const Tensor& latent) {
  Shape shape(latent.rank(), 1);
  shape[1] = std::int64_t(numbers.size());
  return ctx.upload(shape, HEDDLE_F32, numbers.data());
}

Span middle(std::int64_t size, std::int64_t downscale) {
  const std::int64_t rest = size % downscale;
  return {rest / 2, rest / 2 + size - rest};
}

}  // namespace

Autoencoder::Autoencoder(const Value& vae)
    : scale(vae.get<double>("scale", 1)),
      shift(vae.get<double>("shift", 0)),
      means(floats_of(vae.field("latent_means"))),
      deviations(floats_of(vae.field("latent_deviations"))),
      channels(vae.get<std::int64_t>("channels", 0)),
      downscale(vae.get<std::int64_t>("downscale", kUsualDownscale)),
      colours(vae.get<std::int64_t>("pixel_channels", kColours)) {
  if (!(scale != 0))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: its latent scale is 0. Check scaling_factor in the file's metadata or "
                "config.");
  const bool one_each = means.size() == deviations.size() &&
                        (means.empty() || std::int64_t(means.size()) == channels);
  if (!one_each || std::ranges::count(deviations, 0.0f) > 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: it has " + std::to_string(means.size()) + " latent_means and " +
                    std::to_string(deviations.size()) + " latent_deviations for " +
                    std::to_string(channels) +
                    " channels. Give one of each for every channel, no deviation of 0.");
  if (downscale < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: its downscale is " + std::to_string(downscale) + ", it must be 1 or more");
  if (colours != kColours && colours != kColours + 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "vae: its pictures have " + std::to_string(colours) +
                                             " channels, they must have 3, or 4 with alpha");
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
  if (vae.has("audio"))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: this is an autoencoder of sound, not of pictures. Take VAEDecodeAudio or "
                "VAEEncodeAudio, or load that of pictures.");
  const Value model = vae.field(side);
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string("vae: this autoencoder's file has no ") + side +
                                           ". Load a file that has one (VAELoader).");
}

void check_channels(std::int64_t channels, const Autoencoder& autoencoder) {
  if (autoencoder.channels == 0 || channels == autoencoder.channels) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, "samples: they have " + std::to_string(channels) +
                                           " channels, the autoencoder takes " +
                                           std::to_string(autoencoder.channels) +
                                           ". Load the autoencoder that belongs to the model.");
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
  check_channels(samples.size(1), autoencoder);
  return samples;
}

Tensor raw_of(Context& ctx, const Tensor& samples, const Value& latent,
              const Autoencoder& autoencoder) {
  if (!latent.get<bool>("scaled", false)) return ops::contiguous(ctx, samples);
  const auto restored = [&](const std::vector<float>& means, const std::vector<float>& deviations) {
    return ops::add(ctx, ops::mul(ctx, samples, by_channel(ctx, deviations, samples)),
                    by_channel(ctx, means, samples));
  };
  const std::vector<float> means = floats_of(latent.field("latent_means")),
                           deviations = floats_of(latent.field("latent_deviations"));
  if (std::int64_t(means.size()) == samples.size(1) && means.size() == deviations.size())
    return restored(means, deviations);
  if (!autoencoder.means.empty()) return restored(autoencoder.means, autoencoder.deviations);
  // The model knows better than an autoencoder whose file tells nothing.
  const double scale = latent.get<double>("scale", autoencoder.scale),
               shift = latent.get<double>("shift", autoencoder.shift);
  if (!(scale != 0))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "samples: their scale is 0. Check latent_scale in the model's settings.");
  return ops::scale_clamp(ctx, samples, {1 / scale, shift, -kUnlimited, kUnlimited});
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

Tensor covered_by_cells(Context& ctx, const Tensor& picture, const Autoencoder& autoencoder) {
  const CoveredPart part = covered_part(picture.shape(), autoencoder);
  const Tensor covered = picture.slice(1, part.rows.begin, part.rows.end)
                             .slice(2, part.columns.begin, part.columns.end);
  if (picture.size(3) >= autoencoder.colours) return covered.slice(3, 0, autoencoder.colours);
  const Tensor opaque =
      ctx.make({picture.size(0), part.rows.size(), part.columns.size(), autoencoder.colours},
               picture.dtype());
  ops::copy_into(ctx, covered.slice(3, 0, kColours), opaque.slice(3, 0, kColours));
  ops::fill(ctx, opaque.slice(3, kColours, autoencoder.colours), 1);
  return opaque;
}

Tensor decoded(Context& ctx, const Value& decoder, const Tensor& z) {
  if (!decoder) return ops::cast(ctx, z.permute({0, 2, 3, 1}), HEDDLE_F32);
  Record inputs;
  inputs.set("z", value_of(z));
  set_decoder_noise(ctx, decoder, z, inputs);
  return call_model(ctx, decoder, inputs.value()).get<Tensor>("image", {});
}

Tensor mean_of(Context& ctx, const Value& encoder, const Tensor& picture) {
  const Tensor centred = ops::scale_clamp(ctx, picture, {2, -1, -kUnlimited, kUnlimited});
  if (!encoder) return ops::cast(ctx, centred.permute({0, 3, 1, 2}), HEDDLE_F32);
  const Value encoded = call_model(ctx, encoder, Record().set("image", value_of(centred)).value());
  return encoded.get<Tensor>("mean", {});
}

namespace {

Tensor normalised(Context& ctx, const Tensor& mean, const Autoencoder& autoencoder) {
  std::vector<float> factors, offsets;
  for (std::size_t i = 0; i < autoencoder.means.size(); ++i) {
    factors.push_back(1 / autoencoder.deviations[i]);
    offsets.push_back(-autoencoder.means[i] / autoencoder.deviations[i]);
  }
  return ops::add(ctx, ops::mul(ctx, mean, by_channel(ctx, factors, mean)),
                  by_channel(ctx, offsets, mean));
}

}  // namespace

Record latent_of(Context& ctx, const Tensor& mean, const Autoencoder& autoencoder) {
  const double scale = autoencoder.scale, offset = -autoencoder.shift * autoencoder.scale;
  const Tensor scaled = autoencoder.means.empty()
                            ? ops::scale_clamp(ctx, mean, {scale, offset, -kUnlimited, kUnlimited})
                            : normalised(ctx, mean, autoencoder);
  Record latent;
  latent.set("samples", value_of(scaled)).set("scaled", value_of(true));
  if (autoencoder.means.empty())
    latent.set("scale", value_of(scale)).set("shift", value_of(autoencoder.shift));
  return latent;
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count = checked_product({count, size}, "the picture");
  return count;
}

}  // namespace heddle::vae
