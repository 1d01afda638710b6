#include "shown_picture.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>

#include "pictures.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/decoder_noise.h"
#include "vision_tower.h"

namespace heddle::encoders {
namespace {

using blocks::GridSize;

constexpr std::int64_t kShownColours = 3;
// Of the noise in the picture.
constexpr std::uint64_t kPictureStream = 100;

Value tower_of(const Value& record) {
  const Value model = record.field("model");
  if (!model.is(HEDDLE_KIND_MODEL))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "clip_vision: it holds no model. Link ImageOnlyCheckpointLoader.");
  if (!model_settings(model).has("projected_width"))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "clip_vision: the tower makes no embedding of a picture, which the model reads. "
                "Link that of ImageOnlyCheckpointLoader.");
  return model;
}

// The middle of pictures in another size, with noise: (B, h, w, 3) f32 on the call's device.
Tensor shown_pixels(Context& ctx, const Tensor& image, const GridSize& to, double noise) {
  HostMemory memory(ctx);
  const HostFloats values(ctx, image);
  const std::int64_t items = image.size(0), channels = image.size(3);
  const blocks::Grids grids{items, {image.size(1), image.size(2)}, channels};
  std::pmr::vector<float> scaled(
      std::size_t(checked_product({items, to.height, to.width, channels}, "the picture")), &memory);
  blocks::resample(blocks::centre_cropped(blocks::Source::of(values.data(), grids), to), to,
                   blocks::Resampling::bilinear, scaled.data(), memory, [&] {
                     if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
                   });
  const std::int64_t count = items * to.height * to.width * kShownColours;
  std::pmr::vector<float> colours(std::size_t(count), &memory);
  for (std::int64_t i = 0; i < count; ++i) {
    float& colour = colours[std::size_t(i)];
    colour = scaled[std::size_t(i / kShownColours * channels + i % kShownColours)];
    if (noise > 0) colour += vae::drawn_number(kPictureStream, std::uint64_t(i)) * float(noise);
  }
  return ctx.upload({items, to.height, to.width, kShownColours}, HEDDLE_F32, colours.data());
}

}  // namespace

Tensor zeros(Context& ctx, const Shape& shape) {
  const Tensor made = ctx.make(shape, HEDDLE_F32);
  ops::fill(ctx, made, 0);
  return made;
}

ShownPicture shown_picture(Context& ctx, const Value& tower, const Tensor& image, const Value& vae,
                           const GridSize& to, double noise) {
  picture_size(image.shape(), "init_image");
  const Value seen = seen_by_tower(ctx, tower_of(tower), image, true);
  const Tensor rows = seen.field("image_embeds").as<Tensor>();
  const vae::Autoencoder autoencoder(vae);
  const Tensor pixels = shown_pixels(ctx, image, to, noise);
  const Tensor mean = vae::mean_of(ctx, vae::model_of(vae, "encoder"),
                                   vae::covered_by_cells(ctx, pixels, autoencoder));
  if (mean.rank() != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: this autoencoder is one of videos, and the picture is shown as a picture. "
                "Link the VAE of the checkpoint that the model comes from.");
  return {rows.reshape({1, rows.size(0), rows.size(1)}), mean};
}

std::optional<ShownShapes> tell_shown(Infer& question, const Value& tower, const Shape& image,
                                      const Value& vae, const GridSize& to) {
  if (image.size() != 4 || !tower.field("model").is(HEDDLE_KIND_MODEL)) return {};
  picture_size(image, "init_image");
  const std::optional<vae::Autoencoder> autoencoder = vae::usable(vae);
  if (!autoencoder || autoencoder->channels == 0) return {};
  const std::int64_t items = image[0], side = autoencoder->downscale,
                     high = autoencoder->cells(to.height), wide = autoencoder->cells(to.width);
  if (high == 0 || wide == 0) return {};
  ShownShapes shown{{}, {items, autoencoder->channels, high, wide}};
  for (const auto& [field, made] : tell_tower(question, tower_of(tower), image, true))
    if (field == "image_embeds") shown.text = {1, made[0], made[1]};
  question.host_scratch(2 * scaling_bytes(image, to));
  const Value encoder = vae.field("encoder");
  if (encoder.is(HEDDLE_KIND_MODEL))
    question.call(
        encoder,
        {{{{"image", HEDDLE_F32, {items, high * side, wide * side, autoencoder->colours}}}, {}}});
  return shown;
}

}  // namespace heddle::encoders
