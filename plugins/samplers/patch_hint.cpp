#include "patch_hint.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "conditioning.h"
#include "hint_pixels.h"
#include "model_sampling.h"
#include "plugins/blocks/autoencoder.h"
#include "sample_shapes.h"
#include "video_hint.h"

namespace heddle::samplers {
namespace {

constexpr float kGrey = 0.5f;

// Behind the latent of the picture.
enum class Behind { kNothing, kMask, kMaskAndPicture };

std::optional<Behind> behind(const Value& patch) {
  const Value settings = model_settings(patch);
  const auto latent = settings.get<std::int64_t>("latent_channels", 0),
             more = settings.get<std::int64_t>("hint_channels", 0) - latent;
  if (more == 0) return Behind::kNothing;
  if (more == 1) return Behind::kMask;
  if (more == latent + 1) return Behind::kMaskAndPicture;
  return {};
}

void refuse(const std::string& why) { throw Error(HEDDLE_INVALID_ARGUMENT, "model_patch: " + why); }

// A latent (rows, C, h, w) in the model's units, or a mask of one channel.
struct Planes {
  std::int64_t rows = 0, channels = 0;
  std::pmr::vector<float> values;
};

// Makes the parts of one hint.
class HintParts {
 public:
  HintParts(Context& ctx, const AppliedPatch& patch, const Value& denoiser, const Shape& point,
            std::pmr::memory_resource& memory)
      : ctx_(ctx),
        patch_(patch),
        autoencoder_(patch.vae),
        format_(latent_format(model_settings(denoiser))),
        cells_{point[2], point[3]},
        pixels_{checked_product({point[2], autoencoder_.downscale}, "the hint's height"),
                checked_product({point[3], autoencoder_.downscale}, "the hint's width")},
        memory_(memory) {
    if (!patch.mask) return;
    kept_ = read_mask(ctx, patch.mask.as<Tensor>(), memory);
    for (float& value : kept_->values) value = 1.0f - value;
  }

  Planes picture() { return patch_.image ? latent_of(resized(patch_.image)) : latent_of(grey()); }
  // Grey where it is drawn anew.
  Planes inpainted() {
    if (!patch_.inpainted) return latent_of(grey());
    HintPixels picture = resized(patch_.inpainted);
    if (kept_) grey_out(picture);
    return latent_of(picture);
  }
  // Without a mask the same everywhere.
  Planes mask(Behind what) {
    const bool has_picture = what == Behind::kMaskAndPicture;
    const auto plane = std::size_t(cells_.height * cells_.width);
    Planes made{1, 1, std::pmr::vector<float>(plane, has_picture ? 0.0f : 1.0f, &memory_)};
    if (!kept_) return made;
    made.rows = kept_->rows;
    if (has_picture) {
      nearest(*kept_, made);
      return made;
    }
    HintPixels small = *kept_;
    resize(small, cells_, blocks::Resampling::bilinear, memory_, false);
    made.values = std::move(small.values);
    return made;
  }

 private:
  HintPixels resized(const Value& image) {
    HintPixels pixels = read_image(ctx_, image.as<Tensor>(), memory_);
    resize(pixels, pixels_, blocks::Resampling::area, memory_);
    return pixels;
  }
  HintPixels grey() {
    HintPixels pixels{.rows = 1,
                      .colours = vae::kColours,
                      .height = pixels_.height,
                      .width = pixels_.width,
                      .values = std::pmr::vector<float>(&memory_)};
    pixels.values.assign(std::size_t(pixels_.height * pixels_.width * vae::kColours), kGrey);
    return pixels;
  }
  void grey_out(HintPixels& picture) {
    HintPixels kept = *kept_;
    resize(kept, pixels_, blocks::Resampling::bilinear, memory_);
    const std::int64_t plane = picture.height * picture.width;
    for (std::int64_t i = 0; i < picture.rows * plane; ++i) {
      const std::int64_t row = i / plane % kept.rows;
      const float factor = std::nearbyint(kept.values[std::size_t(row * plane + i % plane)]);
      for (std::int64_t c = 0; c < picture.colours; ++c) {
        float& value = picture.values[std::size_t(i * picture.colours + c)];
        value = (value - kGrey) * factor + kGrey;
      }
    }
  }
  // PyTorch's "nearest": the cell whose corner is nearest, not its middle.
  void nearest(const HintPixels& from, Planes& to) {
    const auto all = blocks::Source::of(from.values.data(), {from.rows, from.size(), from.colours});
    const blocks::Source part = blocks::centre_cropped(all, cells_);
    const auto at = [](std::int64_t i, std::int64_t count, std::int64_t cells) {
      const float step = float(count) / float(cells);
      return std::min(std::int64_t(std::floor(float(i) * step)), count - 1);
    };
    const blocks::GridSize& size = part.grids.size;
    to.values.clear();
    for (std::int64_t row = 0; row < from.rows; ++row)
      for (std::int64_t y = 0; y < cells_.height; ++y)
        for (std::int64_t x = 0; x < cells_.width; ++x)
          to.values.push_back(
              part.row(row, at(y, size.height, cells_.height))[at(x, size.width, cells_.width)]);
  }
  Planes latent_of(const HintPixels& picture) {
    const Tensor pixels =
        ctx_.upload({picture.rows, picture.height, picture.width, picture.colours}, HEDDLE_F32,
                    picture.values.data());
    const Tensor mean =
        vae::mean_of(ctx_, vae::model_of(patch_.vae, "encoder"),
                     ops::contiguous(ctx_, vae::covered_by_cells(ctx_, pixels, autoencoder_)));
    Planes made{mean.size(0), mean.size(1), std::pmr::vector<float>(&memory_)};
    made.values.resize(std::size_t(mean.count()));
    read_to<float>(ctx_, mean, made.values);
    const std::int64_t plane = cells_.height * cells_.width;
    for (std::size_t i = 0; i < made.values.size(); ++i) {
      const LatentFormat::Units& units = format_.of(std::int64_t(i) / plane % made.channels);
      made.values[i] = (made.values[i] - float(units.shift)) * float(units.scale);
    }
    return made;
  }

  Context& ctx_;
  const AppliedPatch& patch_;
  const vae::Autoencoder autoencoder_;
  const LatentFormat format_;
  const blocks::GridSize cells_, pixels_;
  std::pmr::memory_resource& memory_;
  std::optional<HintPixels> kept_;
};

}  // namespace

void check_hint_parts(const AppliedPatch& patch) {
  const std::optional<Behind> more = behind(patch.model);
  if (!more)
    refuse("this patch (" + model_family(patch.model) + ") reads hints of " +
           std::to_string(model_settings(patch.model).get<std::int64_t>("hint_channels", 0)) +
           " channels, which are neither those of a picture nor those of one with a mask and of "
           "what is drawn anew. Load one that reads these.");
  if (!patch.vae) refuse("it reads the latent of its hint. Link the model's VAE to vae.");
  if (reads_video(patch.model)) return check_video_hint(patch);
  if (patch.image || (more == Behind::kMaskAndPicture && patch.inpainted)) return;
  refuse(std::string("this patch (") + model_family(patch.model) +
         ") is shown nothing. Link an IMAGE to image" +
         (more == Behind::kMaskAndPicture ? " or to inpaint_image." : "."));
}

std::optional<PatchShapes> patch_shapes(const AppliedPatch& patch, const Shape& cells,
                                        std::int64_t items) {
  if (reads_video(patch.model)) return video_hint_shapes(patch, cells);
  const std::optional<vae::Autoencoder> autoencoder = vae::usable(patch.vae);
  const std::optional<Behind> more = behind(patch.model);
  if (!autoencoder || !more || cells.size() != 2) return {};
  PatchShapes shapes;
  std::int64_t rows = 1;
  bool is_known = true;
  const auto rows_of = [&](const Value& given) -> std::int64_t {
    if (!given) return 1;
    const std::optional<heddle_tensor_info> info = info_of(given);
    is_known = is_known && info && info->rank > 2;
    const std::int64_t found = is_known ? info->shape[0] : 1;
    rows = std::max(rows, found);
    return found;
  };
  const auto show = [&](const Value& given) {
    shapes.pictures.push_back(
        {rows_of(given), checked_product({cells[0], autoencoder->downscale}, "the hint's height"),
         checked_product({cells[1], autoencoder->downscale}, "the hint's width"),
         autoencoder->colours});
  };
  show(patch.image);
  if (more != Behind::kNothing) rows_of(patch.mask);
  if (more == Behind::kMaskAndPicture) show(patch.inpainted);
  if (!is_known) return {};
  shapes.hint = {fitted_rows(rows, items),
                 model_settings(patch.model).get<std::int64_t>("hint_channels", 0), cells[0],
                 cells[1]};
  return shapes;
}

Tensor patch_hint(Context& ctx, const AppliedPatch& patch, const Value& denoiser,
                  const Shape& point, std::pmr::memory_resource& memory) {
  if (reads_video(patch.model)) return video_hint(ctx, patch, point, memory);
  if (point.size() != 4)
    throw Error(HEDDLE_UNSUPPORTED,
                "a model patch reads the hint of a picture, and the latent is a video's. Give it "
                "the latent of a picture.");
  const Behind more = *behind(patch.model);
  HintParts parts(ctx, patch, denoiser, point, memory);
  std::vector<Planes> all;
  all.push_back(parts.picture());
  if (more != Behind::kNothing) all.push_back(parts.mask(more));
  if (more == Behind::kMaskAndPicture) all.push_back(parts.inpainted());
  const std::int64_t plane = point[2] * point[3];
  std::int64_t rows = 1, channels = 0;
  for (const Planes& part : all) {
    rows = std::max(rows, part.rows);
    channels += part.channels;
  }
  const Tensor made = ctx.make_host({rows, channels, point[2], point[3]}, HEDDLE_F32);
  float* to = made.data<float>();
  for (std::int64_t row = 0; row < rows; ++row)
    for (const Planes& part : all) {
      const std::int64_t count = part.channels * plane;
      to = std::copy_n(part.values.data() + row % part.rows * count, count, to);
    }
  return fit_batch(ctx, ctx.upload(made.shape(), HEDDLE_F32, made.data<float>()), point.front());
}

}  // namespace heddle::samplers
