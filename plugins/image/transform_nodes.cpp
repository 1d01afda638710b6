#include "plugins/image/transform_nodes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

// Where a part begins and how large it is, as ComfyUI cuts it: the corner is pulled inside.
struct Part {
  std::int64_t x, y, width, height;
};
Part part_of(const Extent& e, std::int64_t x, std::int64_t y, std::int64_t width,
             std::int64_t height) {
  const std::int64_t left = std::min(x, e.width - 1), top = std::min(y, e.height - 1);
  return {left, top, std::min(width, e.width - left), std::min(height, e.height - top)};
}

// Quarters of a turn in "90 degrees".
int quarter_turns_in(const std::string& rotation) {
  return rotation.starts_with("90")    ? 1
         : rotation.starts_with("180") ? 2
         : rotation.starts_with("270") ? 3
                                       : 0;
}
Extent turned(Extent e, int quarters) {
  if (quarters % 2 == 1) std::swap(e.height, e.width);
  return e;
}

blocks::GridSize with_longer_side(const Extent& e, std::int64_t side) {
  const double h = double(e.height), w = double(e.width);
  if (e.height > e.width) return {side, blocks::rounded(w / h * double(side))};
  if (e.width > e.height) return {blocks::rounded(h / w * double(side)), side};
  return {side, side};
}

// The sizes that FLUX Kontext was trained on, width and height; all but the square lie, too.
constexpr std::array<std::array<std::int64_t, 2>, 9> kKontextSizes{{{672, 1568},
                                                                    {688, 1504},
                                                                    {720, 1456},
                                                                    {752, 1392},
                                                                    {800, 1328},
                                                                    {832, 1248},
                                                                    {880, 1184},
                                                                    {944, 1104},
                                                                    {1024, 1024}}};
blocks::GridSize kontext_size(const Extent& e) {
  const double aspect = double(e.width) / double(e.height);
  double least = INFINITY;
  blocks::GridSize best;
  const auto consider = [&](std::int64_t width, std::int64_t height) {
    const double difference = std::fabs(aspect - double(width) / double(height));
    if (difference < least) best = {height, width};
    least = std::min(least, difference);
  };
  for (const auto& [narrow, tall] : kKontextSizes) consider(narrow, tall);
  for (auto size = kKontextSizes.rbegin(); size != kKontextSizes.rend(); ++size)
    consider((*size)[1], (*size)[0]);
  return best;
}

}  // namespace

void GetImageSize::execute(Context& ctx) {
  const Extent e = image_extent(ctx[image].shape(), "image");
  ctx[width_out] = e.width;
  ctx[height_out] = e.height;
  ctx[batch_size_out] = e.count;
}
void GetImageSize::infer(Infer& question) {
  const auto e = extent_of_image(question, image);
  if (!e) return;
  question.known(width_out, "", value_of(e->width));
  question.known(height_out, "", value_of(e->height));
  question.known(batch_size_out, "", value_of(e->count));
}

void ImageCrop::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Part part = part_of(from.extent(), ctx[x], ctx[y], ctx[width], ctx[height]);
  const Canvas to =
      Canvas::image(ctx, {from.extent().count, part.height, part.width, from.extent().channels});
  for (std::int64_t i = 0; i < to.extent().count; ++i)
    for (std::int64_t row = 0; row < part.height; ++row)
      std::copy_n(from.at(i, part.y + row, part.x), to.extent().row(), to.row(i, row));
  ctx[out] = to.tensor();
}
void ImageCrop::infer(Infer& question) {
  const auto e = extent_of_image(question, image);
  const auto left = question[x], top = question[y], w = question[width], h = question[height];
  if (!e || !left || !top || !w || !h) return;
  const Part part = part_of(*e, *left, *top, *w, *h);
  question.out(out, "", HEDDLE_F32, {e->count, part.height, part.width, e->channels});
}

void ImageFlip::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Extent& e = from.extent();
  const bool is_vertical = ctx[flip_method].starts_with('x');
  const Canvas to = Canvas::image(ctx, e);
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y) {
      if (is_vertical)
        std::copy_n(from.row(i, e.height - 1 - y), e.row(), to.row(i, y));
      else
        for (std::int64_t x = 0; x < e.width; ++x)
          std::copy_n(from.at(i, y, e.width - 1 - x), e.channels, to.at(i, y, x));
    }
  ctx[out] = to.tensor();
}
void ImageFlip::infer(Infer& question) { infer_like(question, image, out); }

void ImageRotate::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const Extent& e = from.extent();
  const int quarters = quarter_turns_in(ctx[rotation]);
  const Canvas to = Canvas::image(ctx, turned(e, quarters));
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < to.extent().height; ++y)
      for (std::int64_t x = 0; x < to.extent().width; ++x) {
        const std::int64_t up = to.extent().height - 1 - y, left = to.extent().width - 1 - x;
        const float* pixel = quarters == 1   ? from.at(i, left, y)
                             : quarters == 2 ? from.at(i, up, left)
                             : quarters == 3 ? from.at(i, x, up)
                                             : from.at(i, y, x);
        std::copy_n(pixel, e.channels, to.at(i, y, x));
      }
  ctx[out] = to.tensor();
}
void ImageRotate::infer(Infer& question) {
  const auto e = extent_of_image(question, image);
  const auto how = question[rotation];
  if (e && how) question.out(out, "", HEDDLE_F32, image_shape(turned(*e, quarter_turns_in(*how))));
}

void ImageScaleToMaxDimension::execute(Context& ctx) {
  Pixels pixels = Pixels::image(ctx, ctx[image], "image");
  pixels.resize(ctx, with_longer_side(pixels.extent(), ctx[largest_size]), ctx[upscale_method]);
  const Canvas to = Canvas::image(ctx, pixels.extent());
  to.copy(pixels);
  ctx[out] = to.tensor();
}
void ImageScaleToMaxDimension::infer(Infer& question) {
  const auto e = extent_of_image(question, image);
  const auto side = question[largest_size];
  if (!e || !side) return;
  const blocks::GridSize to = with_longer_side(*e, *side);
  if (to.height > 0 && to.width > 0)
    question.out(out, "", HEDDLE_F32, {e->count, to.height, to.width, e->channels});
}

void ResizeAndPadImage::execute(Context& ctx) {
  Pixels pixels = Pixels::image(ctx, ctx[image], "image");
  const std::int64_t w = ctx[target_width], h = ctx[target_height];
  const double scale = std::min(double(w) / double(pixels.extent().width),
                                double(h) / double(pixels.extent().height));
  pixels.resize(ctx,
                {std::int64_t(double(pixels.extent().height) * scale),
                 std::int64_t(double(pixels.extent().width) * scale)},
                ctx[interpolation]);
  const Extent& e = pixels.extent();
  const Canvas to = Canvas::image(ctx, {e.count, h, w, e.channels});
  to.fill(ctx[padding_color] == "white" ? 1.0f : 0.0f);
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      std::copy_n(pixels.row(i, y), e.row(), to.at(i, (h - e.height) / 2 + y, (w - e.width) / 2));
  ctx[out] = to.tensor();
}
void ResizeAndPadImage::infer(Infer& question) {
  const auto e = extent_of_image(question, image);
  const auto w = question[target_width], h = question[target_height];
  if (e && w && h) question.out(out, "", HEDDLE_F32, {e->count, *h, *w, e->channels});
}

void FluxKontextImageScale::execute(Context& ctx) {
  Pixels pixels = Pixels::image(ctx, ctx[image], "image");
  pixels.resize(ctx, kontext_size(pixels.extent()), "lanczos", true);
  const Canvas to = Canvas::image(ctx, pixels.extent());
  to.copy(pixels);
  ctx[out] = to.tensor();
}
void FluxKontextImageScale::infer(Infer& question) {
  const auto e = extent_of_image(question, image);
  if (!e) return;
  const blocks::GridSize to = kontext_size(*e);
  question.out(out, "", HEDDLE_F32, {e->count, to.height, to.width, e->channels});
}

}  // namespace heddle::image
