#include "control_hint.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "conditioning.h"
#include "model_sampling.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/resample.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

// What shall be drawn anew is black.
void black_out(HintPixels& picture, HintPixels kept, std::pmr::memory_resource& memory) {
  resize(kept, picture.size(), blocks::Resampling::bilinear, memory);
  const std::int64_t plane = picture.height * picture.width;
  for (std::int64_t i = 0; i < picture.rows * plane; ++i) {
    const std::int64_t row = i / plane % kept.rows;
    const float factor = std::nearbyint(kept.values[std::size_t(row * plane + i % plane)]);
    for (std::int64_t c = 0; c < picture.colours; ++c)
      picture.values[std::size_t(i * picture.colours + c)] *= factor;
  }
}

// The autoencoder's mean in the ControlNet's units, then the mask.
Tensor as_read(Context& ctx, const Tensor& mean, HintPixels& kept, const LatentFormat& format,
               std::pmr::memory_resource& memory) {
  const std::int64_t rows = mean.size(0), channels = mean.size(1),
                     plane = mean.size(2) * mean.size(3),
                     all = channels + (kept.values.empty() ? 0 : 1);
  std::pmr::vector<float> latent(std::size_t(mean.count()), &memory);
  read_to<float>(ctx, mean, latent);
  const Tensor made = ctx.make_host({rows, all, mean.size(2), mean.size(3)}, HEDDLE_F32);
  if (!kept.values.empty())
    resize(kept, {mean.size(2), mean.size(3)}, blocks::Resampling::nearest_exact, memory);
  float* to = made.data<float>();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < channels * plane; ++i) {
      const LatentFormat::Units& units = format.of(i / plane);
      *to++ = (latent[std::size_t(row * channels * plane + i)] - float(units.shift)) *
              float(units.scale);
    }
    for (std::int64_t i = 0; !kept.values.empty() && i < plane; ++i)
      *to++ = kept.values[std::size_t(row % kept.rows * plane + i)];
  }
  return ctx.upload(made.shape(), HEDDLE_F32, made.data<float>());
}

// As many as the ControlNet reads for these cells of the latent.
blocks::GridSize pixels_of(const Shape& cells, const vae::Autoencoder& autoencoder,
                           const Value& settings) {
  if (cells.size() != 2)
    throw Error(HEDDLE_UNSUPPORTED,
                "a ControlNet reads the hint of a picture, and the latent is a video's. Give it "
                "the latent of a picture.");
  const auto multiple = std::max<std::int64_t>(settings.get<std::int64_t>("hint_multiple", 1), 1);
  const auto side = [&](std::int64_t count, const char* what) {
    const std::int64_t pixels = checked_product({count, autoencoder.downscale}, what);
    return checked_product({(pixels + multiple - 1) / multiple, multiple}, what);
  };
  return {side(cells[0], "the hint's height"), side(cells[1], "the hint's width")};
}

bool reads_pixels(const Value& settings) { return settings.get<bool>("hint_pixels", false); }

// What says how a hint's pixels become cells: of ControlNets that read pixels the usual eight along
// a side.
Value encoder_of(const Control& control) {
  return reads_pixels(model_settings(control.model)) ? Record().value() : control.vae;
}

bool is_grey(const Value& settings) { return settings.get<bool>("hint_grey", false); }

// The mean of its colours in their place.
void make_grey(HintPixels& picture, std::pmr::memory_resource& memory) {
  std::pmr::vector<float> means(&memory);
  for (std::size_t i = 0; i < picture.values.size(); i += std::size_t(picture.colours)) {
    double sum = 0;
    for (std::int64_t c = 0; c < picture.colours; ++c) sum += picture.values[i + std::size_t(c)];
    means.push_back(float(sum / double(picture.colours)));
  }
  picture.values = std::move(means);
  picture.colours = 1;
}

bool reads_mask(const Value& settings) {
  const auto latent = settings.get<std::int64_t>("latent_channels", 0);
  return settings.get<std::int64_t>("hint_channels", latent) > latent;
}

}  // namespace

std::optional<HintShapes> hint_shapes(const Control& control, const Shape& cells,
                                      std::int64_t items) {
  const std::optional<heddle_tensor_info> hint = info_of(control.hint);
  const std::optional<vae::Autoencoder> autoencoder = vae::usable(encoder_of(control));
  if (!hint || !autoencoder || hint->rank != 4 || cells.size() != 2) return {};
  const Value settings = model_settings(control.model);
  const auto latent = settings.get<std::int64_t>("latent_channels", 0);
  const blocks::GridSize size = pixels_of(cells, *autoencoder, settings);
  const std::int64_t rows = fitted_rows(hint->shape[0], items);
  if (reads_pixels(settings))
    return HintShapes{
        {hint->shape[0], size.height, size.width, autoencoder->colours},
        {rows, is_grey(settings) ? 1 : autoencoder->colours, size.height, size.width}};
  return HintShapes{
      {hint->shape[0], size.height, size.width, autoencoder->colours},
      {rows, settings.get<std::int64_t>("hint_channels", latent), cells[0], cells[1]}};
}

Hint read_hint(Context& ctx, const Control& control, const Shape& cells,
               std::pmr::memory_resource& memory) {
  const vae::Autoencoder autoencoder(encoder_of(control));
  const Value settings = model_settings(control.model);
  Hint hint{.picture = read_image(ctx, control.hint.as<Tensor>(), memory),
            .kept = {.values = std::pmr::vector<float>(&memory)}};
  if (reads_mask(settings)) {
    hint.kept = read_mask(ctx, control.mask.as<Tensor>(), memory);
    for (float& value : hint.kept.values) value = 1.0f - value;
    black_out(hint.picture, hint.kept, memory);
  }
  resize(hint.picture, pixels_of(cells, autoencoder, settings), blocks::Resampling::nearest_exact,
         memory);
  const auto factor = float(settings.get<double>("hint_factor", 1.0)),
             offset = float(settings.get<double>("hint_offset", 0.0));
  for (float& value : hint.picture.values) value = value * factor + offset;
  if (is_grey(settings)) make_grey(hint.picture, memory);
  return hint;
}

Tensor encoded_hint(Context& ctx, const Control& control, Hint hint, std::int64_t items,
                    std::pmr::memory_resource& memory) {
  const vae::Autoencoder autoencoder(encoder_of(control));
  const HintPixels& picture = hint.picture;
  const Tensor pixels = ctx.upload({picture.rows, picture.height, picture.width, picture.colours},
                                   HEDDLE_F32, picture.values.data());
  const Tensor covered = ops::contiguous(ctx, vae::covered_by_cells(ctx, pixels, autoencoder));
  if (reads_pixels(model_settings(control.model)))
    return fit_batch(ctx, ops::contiguous(ctx, covered.permute({0, 3, 1, 2})), items);
  const Tensor mean = vae::mean_of(ctx, vae::model_of(control.vae, "encoder"), covered);
  const LatentFormat format = latent_format(model_settings(control.model));
  return fit_batch(ctx, as_read(ctx, mean, hint.kept, format, memory), items);
}

}  // namespace heddle::samplers
