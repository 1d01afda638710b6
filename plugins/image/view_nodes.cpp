#include "plugins/image/view_nodes.h"

#include <algorithm>
#include <array>

#include "plugins/blocks/saved_files.h"
#include "plugins/image/host_pixels.h"
#include "plugins/image/png_files.h"

namespace heddle::image {
namespace {

struct Region {
  std::int64_t left, top, right, bottom;
};

// Begins inside of the picture, and is cut at its border.
Region region_in(const Extent& e, const Value& box) {
  const auto number = [&](const char* key, std::int64_t otherwise) {
    const Value given = box.field(key);
    return given.is(HEDDLE_KIND_FLOAT) ? checked_cast<std::int64_t>(given.as<double>(), key)
                                       : box.get<std::int64_t>(key, otherwise);
  };
  const std::int64_t x = std::min(number("x", 0), e.width - 1),
                     y = std::min(number("y", 0), e.height - 1);
  const std::int64_t width = number("width", 512), height = number("height", 512);
  if (x < 0 || y < 0 || width < 1 || height < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "crop_region: (" + std::to_string(x) + ", " + std::to_string(y) + ") with " +
                    std::to_string(width) + " x " + std::to_string(height) +
                    " pixels is no part of a picture. Give numbers from 0, and sides from 1.");
  return {x, y, std::min(e.width, checked_sum({x, width}, "crop_region")),
          std::min(e.height, checked_sum({y, height}, "crop_region"))};
}

using Levels = std::array<std::int64_t, 256>;

Value list_of_levels(const Levels& levels) {
  std::vector<Value> counts;
  for (const std::int64_t count : levels) counts.push_back(value_of(count));
  return list_of(counts);
}

std::size_t level_of(float value) {
  const float scaled = value * 255.0f;
  return scaled > 0 ? std::size_t(std::min(scaled, 255.0f)) : 0;
}

}  // namespace

void ImageCompare::execute(Context& ctx) {
  const auto show = [&](const Input<Tensor>& input, const char* prefix, const char* told_as) {
    if (ctx.has(input))
      save_pngs(ctx, ctx[input], {"temp", prefix, kPreviewLevel, told_as},
                blocks::workflow_text<ImageCompare>(ctx));
    else
      service<heddle_report_service>().wrote(ctx.raw(), nullptr,
                                             ("{\"" + std::string(told_as) + "\": []}").c_str());
  };
  show(image_a, "comfy.compare.a", "a_images");
  show(image_b, "comfy.compare.b", "b_images");
}

void ImageCropV2::execute(Context& ctx) {
  const Tensor whole = ctx[image];
  const Region part = region_in(image_extent(whole.shape(), "image"), ctx[crop_region]);
  const Tensor cut = whole.slice(1, part.top, part.bottom).slice(2, part.left, part.right);
  save_pngs(ctx, cut, {"temp", blocks::preview_prefix(), kPreviewLevel}, {});
  ctx[out] = cut;
}
void ImageCropV2::infer(Infer& question) {
  const auto e = extent_of_image(question, image);
  const auto box = question[crop_region];
  if (!e || !box) return;
  const Region part = region_in(*e, *box);
  question.out(out, "", HEDDLE_F32,
               {e->count, part.bottom - part.top, part.right - part.left, e->channels});
  question.shares(out);
}

void ImageHistogram::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Extent& e = from.extent();
  if (e.channels < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "image: it has " + std::to_string(e.channels) +
                                             " channels, a histogram takes 3. Give another.");
  Levels levels[3] = {}, grey = {}, all = {};
  for (std::int64_t i = 0; i < e.height * e.width; ++i) {
    const float* pixel = from.row(0, 0) + i * e.channels;
    for (std::size_t c = 0; c < 3; ++c) ++levels[c][level_of(pixel[c])];
    ++grey[level_of(0.2126f * pixel[0] + 0.7152f * pixel[1] + 0.0722f * pixel[2])];
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = (levels[0][i] + levels[1][i] + levels[2][i]) / 3;
  ctx[rgb] = list_of_levels(all);
  ctx[luminance] = list_of_levels(grey);
  ctx[red] = list_of_levels(levels[0]);
  ctx[green] = list_of_levels(levels[1]);
  ctx[blue] = list_of_levels(levels[2]);
}

}  // namespace heddle::image
