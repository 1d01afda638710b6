#include "plugins/image/painter_nodes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "plugins/image/host_pixels.h"
#include "plugins/image/loaded_picture.h"

namespace heddle::image {
namespace {

using Rgb = std::array<float, 3>;

// "#rrggbb"; black for anything else.
Rgb colour_of(const std::string& text) {
  const bool fits = text.size() == 7 && text[0] == '#' &&
                    text.find_first_not_of("0123456789abcdefABCDEF", 1) == text.npos;
  if (!fits) return {0, 0, 0};
  const long digits = std::stol(text.substr(1), nullptr, 16);
  return {float(digits >> 16) / 255.0f, float(digits >> 8 & 0xFF) / 255.0f,
          float(digits & 0xFF) / 255.0f};
}

// Pillow resizes colours that are multiplied by their alpha, in bytes.
void premultiply(Bytes& rgba) {
  for (std::size_t i = 0; i < rgba.size(); i += 4)
    for (std::size_t c = 0; c < 3; ++c) rgba[i + c] = times_255th(rgba[i + c], rgba[i + 3]);
}
void divide_by_alpha(std::vector<float>& rgba) {
  for (std::size_t i = 0; i < rgba.size(); i += 4) {
    const auto alpha = unsigned(rgba[i + 3] * 255.0f + 0.5f);
    if (alpha == 0 || alpha == 255) continue;
    for (std::size_t c = 0; c < 3; ++c) {
      const auto colour = unsigned(rgba[i + c] * 255.0f + 0.5f);
      rgba[i + c] = float(std::min(255u * colour / alpha, 255u)) / 255.0f;
    }
  }
}

// What was painted, RGBA from 0 to 1 in this size.
std::vector<float> painting(Context& ctx, const std::string& name, const blocks::GridSize& to) {
  HostMemory memory(ctx);
  Picture picture = std::move(load_frames(ctx, name, memory)[0].picture);
  const std::size_t count = std::size_t{picture.width} * picture.height;
  Bytes rgba(&memory);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* from = picture.pixels.data() + i * picture.channels;
    rgba.insert(rgba.end(),
                {from[0], from[1], from[2], picture.channels == 4 ? from[3] : std::uint8_t{255}});
  }
  const blocks::GridSize size{picture.height, picture.width};
  const bool resizes = !(size == to);
  if (resizes) premultiply(rgba);
  std::vector<float> values;
  for (const std::uint8_t sample : rgba) values.push_back(float(sample) / 255.0f);
  if (!resizes) return values;
  std::vector<float> resized(std::size_t(to.height * to.width * 4));
  blocks::resample_lanczos(blocks::Source::of(values.data(), {1, size, 4}), to, resized.data(),
                           memory, [&] { check_cancelled(ctx); });
  divide_by_alpha(resized);
  return resized;
}

// One picture and its mask, as they are cut out.
struct CutOut {
  blocks::GridSize size;
  std::vector<float> rgb, mask;

  float mask_at(std::int64_t y, std::int64_t x) const {
    return mask[std::size_t(y * size.width + x)];
  }
};

struct Box {
  std::int64_t left, top, right, bottom;  // the last two are outside
};

// A mask that selects the edge instead of the middle.
bool seems_inverted(const CutOut& cut) {
  const std::int64_t h = cut.size.height, w = cut.size.width;
  double edge = 0, middle = 0;
  for (std::int64_t x = 0; x < w; ++x) edge += cut.mask_at(0, x) + cut.mask_at(h - 1, x);
  for (std::int64_t y = 0; y < h; ++y) edge += cut.mask_at(y, 0) + cut.mask_at(y, w - 1);
  std::int64_t count = 0;
  for (std::int64_t y = h / 4; y < h - h / 4; ++y)
    for (std::int64_t x = w / 4; x < w - w / 4; ++x, ++count) middle += cut.mask_at(y, x);
  return edge / double(2 * (h + w)) > 0.5 &&
         middle / double(std::max<std::int64_t>(count, 1)) < 0.5;
}

void invert(std::vector<float>& mask) {
  for (float& x : mask) x = 1.0f - x;
}

// The greatest of the square around each pixel.
void spread_out(CutOut& cut, std::int64_t radius) {
  const std::int64_t h = cut.size.height, w = cut.size.width;
  for (const bool is_row : {true, false}) {
    const std::vector<float> from = cut.mask;
    const std::int64_t step = is_row ? 1 : w;
    for (std::int64_t y = 0; y < h; ++y)
      for (std::int64_t x = 0; x < w; ++x) {
        const std::int64_t at = is_row ? x : y, end = is_row ? w : h;
        float most = from[std::size_t(y * w + x)];
        for (std::int64_t d = std::max(-radius, -at); d <= std::min(radius, end - 1 - at); ++d)
          most = std::max(most, from[std::size_t(y * w + x + d * step)]);
        cut.mask[std::size_t(y * w + x)] = most;
      }
  }
}

void grow(CutOut& cut, std::int64_t by) {
  if (by < 0) invert(cut.mask);
  if (by != 0) spread_out(cut, std::abs(by));
  if (by < 0) invert(cut.mask);
  for (float& x : cut.mask) x = x < 0.05f ? 0.0f : x;
}

void scale_down(Context& ctx, CutOut& cut, std::int64_t most) {
  const std::int64_t longer = std::max(cut.size.height, cut.size.width);
  if (longer <= most) return;
  const double factor = double(most) / double(longer);
  const blocks::GridSize to{
      std::max<std::int64_t>(1, std::int64_t(double(cut.size.height) * factor)),
      std::max<std::int64_t>(1, std::int64_t(double(cut.size.width) * factor))};
  HostMemory memory(ctx);
  const auto resized = [&](const std::vector<float>& from, std::int64_t channels) {
    std::vector<float> out(std::size_t(to.height * to.width * channels));
    blocks::resample_lanczos(blocks::Source::of(from.data(), {1, cut.size, channels}), to,
                             out.data(), memory);
    return out;
  };
  cut.rgb = resized(cut.rgb, 3);
  cut.mask = resized(cut.mask, 1);
  cut.size = to;
}

// Around all that is selected; nothing where that is nothing.
std::optional<Box> bounds(const CutOut& cut) {
  constexpr float kLeast = 205.0f;  // of 255
  Box box{cut.size.width, cut.size.height, 0, 0};
  for (std::int64_t y = 0; y < cut.size.height; ++y)
    for (std::int64_t x = 0; x < cut.size.width; ++x)
      if (std::trunc(cut.mask_at(y, x) * 255.0f) >= kLeast)
        box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x + 1),
               std::max(box.bottom, y + 1)};
  return box.right > box.left ? std::optional(box) : std::nullopt;
}

// The box in this aspect, with room around it.
Box widened(const Box& box, double aspect, double room) {
  const double width = double(box.right - box.left), height = double(box.bottom - box.top);
  const bool is_wide = width / height >= aspect;
  const auto crop_width = std::int64_t(is_wide ? width * room : height * aspect * room),
             crop_height = std::int64_t(is_wide ? width / aspect * room : height * room);
  const std::int64_t half_width = (crop_width + 1) / 2, half_height = (crop_height + 1) / 2;
  const auto left = std::int64_t(double(box.left + box.right - 1) / 2 - double(half_width)),
             top = std::int64_t(double(box.top + box.bottom - 1) / 2 - double(half_height));
  return {left, top, left + 2 * half_width, top + 2 * half_height};
}

// What the box has of the picture, on a colour; black outside.
std::vector<float> composed_in(const CutOut& cut, const Box& box, const Rgb& colour) {
  std::vector<float> out;
  for (std::int64_t y = box.top; y < box.bottom; ++y)
    for (std::int64_t x = box.left; x < box.right; ++x) {
      const bool is_inside = y >= 0 && x >= 0 && y < cut.size.height && x < cut.size.width;
      const float selected = is_inside ? cut.mask_at(y, x) : 0.0f;
      for (std::size_t c = 0; c < 3; ++c) {
        const float from = is_inside ? cut.rgb[std::size_t(y * cut.size.width + x) * 3 + c] : 0.0f;
        out.push_back(std::clamp(from * selected + colour[c] * (1.0f - selected), 0.0f, 1.0f));
      }
    }
  return out;
}

}  // namespace

void Painter::execute(Context& ctx) {
  std::optional<Pixels> below;
  if (ctx.has(image)) below = Pixels::image(ctx, ctx[image], "image");
  Extent e = below ? below->extent() : Extent{1, ctx[height], ctx[width], 3};
  e.count = 1;
  const Canvas to = Canvas::image(ctx, e), selected = Canvas::mask(ctx, {1, e.height, e.width});
  const Rgb colour = colour_of(ctx[bg_color]);
  for (std::int64_t n = 0; n < to.size(); ++n)
    to.data()[n] = below ? below->row(0, 0)[n] : colour[std::size_t(n % 3)];
  selected.fill(0);
  if (const std::string name = ctx[mask]; !name.empty()) {
    const std::vector<float> paint = painting(ctx, name, e.size());
    for (std::int64_t n = 0; n < e.height * e.width; ++n) {
      const float alpha = paint[std::size_t(4 * n + 3)];
      selected.data()[n] = alpha;
      for (std::int64_t c = 0; c < std::min<std::int64_t>(e.channels, 3); ++c) {
        float& pixel = to.data()[n * e.channels + c];
        pixel = paint[std::size_t(4 * n + c)] * alpha + pixel * (1.0f - alpha);
      }
    }
  }
  ctx[picture] = to.tensor();
  ctx[painted] = selected.tensor();
}
std::uint64_t Painter::fingerprint(Context& ctx) {
  const std::string name = ctx[mask];
  return name.empty() ? 0 : picture_hash(ctx, name);
}
void Painter::infer(Infer& question) {
  const auto w = question[width], h = question[height];
  auto e = extent_of_image(question, image);
  if (!e || !w || !h) return;  // whether there is a picture is not known then
  e->count = 1;
  question.out(picture, "", HEDDLE_F32, image_shape(*e));
  question.out(painted, "", HEDDLE_F32, mask_shape(*e));
}

void ImageCropToMask::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[images], "images");
  Pixels selected = Pixels::mask(ctx, ctx[masks], "masks");
  const Extent& e = from.extent();
  if (selected.extent().count != 1 && selected.extent().count != e.count)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "masks: there are " + std::to_string(selected.extent().count) + ", and " +
                    std::to_string(e.count) + " images. Give one, or one for each.");
  if (e.channels < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "images: they have " + std::to_string(e.channels) +
                                             " channels, 3 are needed. Give other pictures.");
  selected.resize(ctx, e.size(), "bilinear");
  const blocks::GridSize to{ctx[height], ctx[width]};
  const Canvas result = Canvas::image(ctx, {e.count, to.height, to.width, 3});
  const Rgb colour = colour_of(ctx[background]);
  HostMemory memory(ctx);
  for (std::int64_t i = 0; i < e.count; ++i) {
    check_cancelled(ctx);
    CutOut cut{e.size(), {}, {}};
    for (std::int64_t n = 0; n < e.height * e.width; ++n) {
      for (std::int64_t c = 0; c < 3; ++c)
        cut.rgb.push_back(std::clamp(from.row(i, 0)[n * e.channels + c], 0.0f, 1.0f));
      cut.mask.push_back(std::clamp(selected.row(i, 0)[n], 0.0f, 1.0f));
    }
    if (seems_inverted(cut)) invert(cut.mask);
    grow(cut, ctx[grow_mask]);
    scale_down(ctx, cut, std::max(to.height, to.width));
    std::optional<Box> box = bounds(cut);
    if (!box) {
      CutOut inverted = cut;
      invert(inverted.mask);
      box = bounds(inverted);
      if (box) cut = std::move(inverted);
    }
    if (!box) ctx.warn("masks: mask " + std::to_string(i) + " selects nothing");
    const Box part = box ? widened(*box, double(to.width) / double(to.height), ctx[pad_factor])
                         : Box{0, 0, cut.size.width, cut.size.height};
    const std::vector<float> composed = composed_in(cut, part, colour);
    blocks::resample_lanczos(
        blocks::Source::of(composed.data(),
                           {1, {part.bottom - part.top, part.right - part.left}, 3}),
        to, result.row(i, 0), memory);
  }
  ctx[out] = result.tensor();
}
void ImageCropToMask::infer(Infer& question) {
  const auto e = extent_of_image(question, images);
  const auto w = question[width], h = question[height];
  if (e && w && h) question.out(out, "", HEDDLE_F32, {e->count, *h, *w, 3});
}

}  // namespace heddle::image
