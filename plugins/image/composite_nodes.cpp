#include "plugins/image/composite_nodes.h"

#include <algorithm>
#include <cmath>

#include "plugins/image/host_pixels.h"
#include "plugins/image/porter_duff.h"

namespace heddle::image {
namespace {

// Channel c of a pixel; one that is missing is opaque.
float channel_of(const float* pixel, std::int64_t channels, std::int64_t c) {
  return c < channels ? pixel[c] : 1.0f;
}

float soft_light(float a, float b) {
  if (b <= 0.5f) return a - (1 - 2 * b) * a * (1 - a);
  const float g = a <= 0.25f ? ((16 * a - 12) * a + 4) * a : std::sqrt(a);
  return a + (2 * b - 1) * (g - a);
}

using Blend = float (*)(float, float);
Blend blend_named(const std::string& mode) {
  if (mode == "multiply") return [](float a, float b) { return a * b; };
  if (mode == "screen") return [](float a, float b) { return 1 - (1 - a) * (1 - b); };
  if (mode == "overlay")
    return [](float a, float b) { return a <= 0.5f ? 2 * a * b : 1 - 2 * (1 - a) * (1 - b); };
  if (mode == "soft_light") return &soft_light;
  if (mode == "difference") return [](float a, float b) { return a - b; };
  return [](float, float b) { return b; };
}

// The colour of the strip between two pictures, and of what fills up a shorter one.
struct StripColour {
  float rgb[3];
  float padding;
};
StripColour strip_colour(const std::string& name) {
  if (name == "white") return {{1, 1, 1}, 1};
  if (name == "red") return {{1, 0, 0}, 0};
  if (name == "green") return {{0, 1, 0}, 0};
  if (name == "blue") return {{0, 0, 1}, 0};
  return {{0, 0, 0}, 0};
}

// Two pictures beside each other, or one below the other, and what is between.
struct Stitch {
  Extent first, second, all;
  bool is_row = true;    // beside each other
  bool swaps = false;    // the second comes first
  std::int64_t gap = 0;  // pixels

  // Where the first or the second begins, along the row or the column.
  std::int64_t start(bool is_second) const {
    const Extent& other = is_second ? first : second;
    return is_second != swaps ? (is_row ? other.width : other.height) + gap : 0;
  }
};

Extent matched(const Extent& first, const Extent& second, bool is_row) {
  const double aspect = double(second.width) / double(second.height);
  Extent to = second;
  to.height = is_row ? first.height : std::int64_t(double(first.width) / aspect);
  to.width = is_row ? std::int64_t(double(first.height) * aspect) : first.width;
  return to;
}

Stitch stitch_of(const Extent& first, const Extent& second, const std::string& direction,
                 std::int64_t spacing) {
  Stitch s{first, second, {}};
  s.is_row = direction == "right" || direction == "left";
  s.swaps = direction == "left" || direction == "up";
  s.gap = spacing + spacing % 2;
  s.all.count = std::max(first.count, second.count);
  s.all.channels = std::max(first.channels, second.channels);
  s.all.height =
      s.is_row ? std::max(first.height, second.height) : first.height + s.gap + second.height;
  s.all.width = s.is_row ? first.width + s.gap + second.width : std::max(first.width, second.width);
  return s;
}

void put_stitched(const Canvas& to, const Stitch& s, const Pixels& from, bool is_second) {
  const Extent& e = from.extent();
  // What pads a picture without alpha is opaque.
  const std::int64_t first_row = s.is_row ? 0 : s.start(is_second),
                     first_column = s.is_row ? s.start(is_second) : 0;
  for (std::int64_t i = 0; i < s.all.count; ++i)
    for (std::int64_t y = 0; y < (s.is_row ? s.all.height : e.height); ++y)
      for (std::int64_t x = 0; x < (s.is_row ? e.width : s.all.width); ++x)
        for (std::int64_t c = e.channels; c < s.all.channels; ++c)
          to.at(i, first_row + y, first_column + x)[c] = 1.0f;
  // What is shorter stands in the middle, a pixel up or left where that is between two.
  const std::int64_t top = s.is_row ? (s.all.height - e.height) / 2 : s.start(is_second);
  const std::int64_t left = s.is_row ? s.start(is_second) : (s.all.width - e.width) / 2;
  for (std::int64_t i = 0; i < s.all.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x)
        for (std::int64_t c = 0; c < s.all.channels; ++c)
          to.at(i, top + y, left + x)[c] =
              channel_of(from.at(std::min(i, e.count - 1), y, x), e.channels, c);
}

}  // namespace

void ImageCompositeMasked::execute(Context& ctx) {
  const Pixels below = Pixels::image(ctx, ctx[destination], "destination");
  Pixels above = Pixels::image(ctx, ctx[source], "source");
  const Extent& e = below.extent();
  if (ctx[resize_source]) above.resize(ctx, e.size(), "bilinear");
  const Extent& s = above.extent();
  std::optional<Pixels> selected;
  if (ctx.has(mask)) {
    selected = Pixels::mask(ctx, ctx[mask], "mask");
    selected->resize(ctx, s.size(), "bilinear");
  }
  const std::int64_t left = ctx[x], top = ctx[y];
  const std::int64_t rows = std::clamp<std::int64_t>(e.height - top, 0, s.height),
                     columns = std::clamp<std::int64_t>(e.width - left, 0, s.width);
  const Canvas to = Canvas::image(ctx, e);
  to.copy(below);
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        float* pixel = to.at(i, top + row, left + column);
        // The source has as many pictures as the destination, then the mask as many as the source.
        const float weight = selected ? *selected->at(i, row, column) : 1.0f;
        for (std::int64_t c = 0; c < e.channels; ++c)
          pixel[c] = weight * channel_of(above.at(i, row, column), s.channels, c) +
                     (1.0f - weight) * pixel[c];
      }
  ctx[out] = to.tensor();
}
void ImageCompositeMasked::infer(Infer& question) { infer_like(question, destination, out); }

void ImageBlend::execute(Context& ctx) {
  const Pixels first = Pixels::image(ctx, ctx[image1], "image1");
  Pixels second = Pixels::image(ctx, ctx[image2], "image2");
  Extent e = first.extent();
  second.resize(ctx, e.size(), "bicubic", true);
  const std::int64_t others = second.extent().count, channels = second.extent().channels;
  if (others != e.count && others != 1 && e.count != 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "image1 has " + std::to_string(e.count) +
                                             " pictures, image2 " + std::to_string(others) +
                                             ". Give as many, or one.");
  e.count = std::max(e.count, others);
  const Blend blend = blend_named(ctx[blend_mode]);
  const double factor = ctx[blend_factor];
  const float f = float(factor), rest = float(1 - factor);
  const Canvas to = Canvas::image(ctx, e);
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x) {
        const float *a = first.at(i, y, x), *b = second.at(i, y, x);
        for (std::int64_t c = 0; c < e.channels; ++c)
          to.at(i, y, x)[c] =
              c == 3 ? a[c]
                     : std::clamp(a[c] * rest + blend(a[c], channel_of(b, channels, c)) * f, 0.0f,
                                  1.0f);
      }
  ctx[out] = to.tensor();
}
void ImageBlend::infer(Infer& question) {
  auto e = extent_of_image(question, image1);
  const auto other = extent_of_image(question, image2);
  if (!e || !other) return;
  e->count = std::max(e->count, other->count);
  question.out(out, "", HEDDLE_F32, image_shape(*e));
}

void PorterDuffImageComposite::execute(Context& ctx) {
  Pixels above = Pixels::image(ctx, ctx[source], "source");
  Pixels above_clear = Pixels::mask(ctx, ctx[source_alpha], "source_alpha");
  const Pixels below = Pixels::image(ctx, ctx[destination], "destination");
  Pixels below_clear = Pixels::mask(ctx, ctx[destination_alpha], "destination_alpha");
  Extent e = below.extent();
  if (above.extent().channels != e.channels)
    throw Error(HEDDLE_INVALID_ARGUMENT, "source has " + std::to_string(above.extent().channels) +
                                             " channels, destination " +
                                             std::to_string(e.channels) +
                                             ". Give pictures of the same channels.");
  for (Pixels* resized : {&above, &above_clear, &below_clear})
    resized->resize(ctx, e.size(), "bicubic", true);
  e.count = std::min(
      {e.count, above.extent().count, above_clear.extent().count, below_clear.extent().count});
  const PorterDuff mode = porter_duff_named(ctx[PorterDuffImageComposite::mode]);
  const Canvas colours = Canvas::image(ctx, e),
               clear = Canvas::mask(ctx, {e.count, e.height, e.width});
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x) {
        const float sa = 1 - *above_clear.at(i, y, x), da = 1 - *below_clear.at(i, y, x);
        const float alpha = porter_duff_alpha(mode, sa, da);
        for (std::int64_t c = 0; c < e.channels; ++c) {
          const float mixed = porter_duff_colour(mode, above.at(i, y, x)[c] * sa, sa,
                                                 below.at(i, y, x)[c] * da, da);
          colours.at(i, y, x)[c] = alpha > 1e-5f ? std::clamp(mixed / alpha, 0.0f, 1.0f) : 0.0f;
        }
        *clear.at(i, y, x) = 1 - alpha;
      }
  ctx[out] = colours.tensor();
  ctx[mask_out] = clear.tensor();
}
void PorterDuffImageComposite::infer(Infer& question) {
  auto e = extent_of_image(question, destination);
  const auto other = extent_of_image(question, source);
  const auto a = extent_of_mask(question, source_alpha),
             b = extent_of_mask(question, destination_alpha);
  if (!e || !other || !a || !b) return;
  e->count = std::min({e->count, other->count, a->count, b->count});
  question.out(out, "", HEDDLE_F32, image_shape(*e));
  question.out(mask_out, "", HEDDLE_F32, mask_shape(*e));
}

void ImageStitch::execute(Context& ctx) {
  if (!ctx.has(image2)) {
    ctx[out] = ctx[image1];
    return;
  }
  const Pixels first = Pixels::image(ctx, ctx[image1], "image1");
  Pixels second = Pixels::image(ctx, ctx[image2], "image2");
  const std::string where = ctx[direction];
  const bool is_row = where == "right" || where == "left";
  if (ctx[match_image_size])
    second.resize(ctx, matched(first.extent(), second.extent(), is_row).size(), "lanczos");
  const Stitch s = stitch_of(first.extent(), second.extent(), where, ctx[spacing_width]);
  const StripColour colour = strip_colour(ctx[spacing_color]);
  const Canvas to = Canvas::image(ctx, s.all);
  // Padding has its value in every channel, the strip is opaque.
  to.fill(colour.padding);
  put_stitched(to, s, first, false);
  put_stitched(to, s, second, true);
  const std::int64_t begin = s.start(!s.swaps) - s.gap;
  for (std::int64_t i = 0; i < s.all.count; ++i)
    for (std::int64_t y = s.is_row ? 0 : begin; y < (s.is_row ? s.all.height : begin + s.gap); ++y)
      for (std::int64_t x = s.is_row ? begin : 0; x < (s.is_row ? begin + s.gap : s.all.width); ++x)
        for (std::int64_t c = 0; c < s.all.channels; ++c)
          to.at(i, y, x)[c] = c < 3 ? colour.rgb[c] : 1.0f;
  ctx[out] = to.tensor();
}
void ImageStitch::infer(Infer& question) {
  const auto first = extent_of_image(question, image1);
  auto second = extent_of_image(question, image2);
  const auto where = question[direction];
  const auto matches = question[match_image_size];
  const auto spacing = question[spacing_width];
  if (!first || !second || !where || !matches || !spacing) return;
  if (*matches) second = matched(*first, *second, *where == "right" || *where == "left");
  if (second->height > 0 && second->width > 0)
    question.out(out, "", HEDDLE_F32,
                 image_shape(stitch_of(*first, *second, *where, *spacing).all));
}

}  // namespace heddle::image
