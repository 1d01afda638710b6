#include "plugins/image/mask_nodes.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "plugins/image/host_pixels.h"

namespace heddle::image {
namespace {

std::int64_t channel_named(const std::string& name) {
  return name == "red" ? 0 : name == "green" ? 1 : name == "blue" ? 2 : 3;
}

void require_channels(const Extent& extent, std::int64_t least, const char* why) {
  if (extent.channels < least)
    throw Error(HEDDLE_INVALID_ARGUMENT, "image: it has " + std::to_string(extent.channels) +
                                             " channels, " + why + " takes " +
                                             std::to_string(least) + ". Give another picture.");
}

// Of a side, what a box that begins at `from` covers; nothing where it begins outside.
std::int64_t covered(std::int64_t side, std::int64_t from, std::int64_t length) {
  return std::clamp<std::int64_t>(side - from, 0, length);
}

// torch.round: half to even, as the processor rounds by default.
bool is_selected(float value) { return std::nearbyint(value) != 0; }

float composed(const std::string& operation, float to, float from) {
  if (operation == "multiply") return to * from;
  if (operation == "add") return to + from;
  if (operation == "subtract") return to - from;
  const bool a = is_selected(to), b = is_selected(from);
  return operation == "and" ? a && b : operation == "or" ? a || b : a != b;
}

// The least or the greatest of a pixel and its neighbours: four, or all eight. At the edges pixels
// stand for their missing neighbours.
bool grow_once(const std::vector<float>& from, std::vector<float>& to, const Extent& e,
               bool shrinks, bool has_corners) {
  bool changed = false;
  for (std::int64_t y = 0; y < e.height; ++y)
    for (std::int64_t x = 0; x < e.width; ++x) {
      const std::int64_t at = y * e.width + x;
      float best = from[std::size_t(at)];
      for (std::int64_t dy = y > 0 ? -1 : 0; dy <= (y + 1 < e.height ? 1 : 0); ++dy)
        for (std::int64_t dx = x > 0 ? -1 : 0; dx <= (x + 1 < e.width ? 1 : 0); ++dx) {
          if (dx != 0 && dy != 0 && !has_corners) continue;
          const float other = from[std::size_t(at + dy * e.width + dx)];
          best = shrinks ? std::min(best, other) : std::max(best, other);
        }
      changed = changed || best != from[std::size_t(at)];
      to[std::size_t(at)] = best;
    }
  return changed;
}

}  // namespace

void MaskToImage::execute(Context& ctx) {
  const Pixels from = Pixels::mask(ctx, ctx[mask], "mask");
  Extent e = from.extent();
  e.channels = 3;
  const Canvas to = Canvas::image(ctx, e);
  const float* value = from.row(0, 0);
  for (std::int64_t i = 0; i < to.size(); ++i) to.data()[i] = value[i / 3];
  ctx[out] = to.tensor();
}
void MaskToImage::infer(Infer& question) {
  auto e = extent_of_mask(question, mask);
  if (!e) return;
  e->channels = 3;
  question.out(out, "", HEDDLE_F32, image_shape(*e));
}

void ImageToMask::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  const std::int64_t c = channel_named(ctx[channel]), channels = from.extent().channels;
  require_channels(from.extent(), c + 1, "this channel");
  const Canvas to =
      Canvas::mask(ctx, {from.extent().count, from.extent().height, from.extent().width, 1});
  const float* value = from.row(0, 0);
  for (std::int64_t i = 0; i < to.size(); ++i) to.data()[i] = value[i * channels + c];
  ctx[out] = to.tensor();
}
void ImageToMask::infer(Infer& question) {
  if (const auto e = extent_of_image(question, image))
    question.out(out, "", HEDDLE_F32, mask_shape(*e));
}

void ImageColorToMask::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  require_channels(from.extent(), 3, "a colour");
  const std::int64_t wanted = ctx[color], channels = from.extent().channels;
  const Canvas to =
      Canvas::mask(ctx, {from.extent().count, from.extent().height, from.extent().width, 1});
  const float* value = from.row(0, 0);
  for (std::int64_t i = 0; i < to.size(); ++i) {
    bool is_same = true;
    for (int c = 0; c < 3; ++c) {
      const float scaled = std::clamp(value[i * channels + c], 0.0f, 1.0f) * 255.0f;
      is_same = is_same && std::nearbyint(scaled) == float(wanted >> (16 - 8 * c) & 0xff);
    }
    to.data()[i] = is_same ? 1.0f : 0.0f;
  }
  ctx[out] = to.tensor();
}
void ImageColorToMask::infer(Infer& question) {
  if (const auto e = extent_of_image(question, image))
    question.out(out, "", HEDDLE_F32, mask_shape(*e));
}

void CropMask::execute(Context& ctx) {
  const Pixels from = Pixels::mask(ctx, ctx[mask], "mask");
  const Extent& e = from.extent();
  const std::int64_t left = ctx[x], top = ctx[y];
  const Extent part{e.count, covered(e.height, top, ctx[height]),
                    covered(e.width, left, ctx[width])};
  if (part.height == 0 || part.width == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "x, y: (" + std::to_string(left) + ", " + std::to_string(top) +
                    ") lies outside of the mask of " + std::to_string(e.width) + " x " +
                    std::to_string(e.height) + ". Begin inside.");
  const Canvas to = Canvas::mask(ctx, part);
  for (std::int64_t i = 0; i < part.count; ++i)
    for (std::int64_t row = 0; row < part.height; ++row)
      std::copy_n(from.at(i, top + row, left), part.width, to.row(i, row));
  ctx[out] = to.tensor();
}
void CropMask::infer(Infer& question) {
  const auto e = extent_of_mask(question, mask);
  const auto left = question[x], top = question[y], w = question[width], h = question[height];
  if (!e || !left || !top || !w || !h) return;
  const Shape shape{e->count, covered(e->height, *top, *h), covered(e->width, *left, *w)};
  if (shape[1] > 0 && shape[2] > 0) question.out(out, "", HEDDLE_F32, shape);
}

void MaskComposite::execute(Context& ctx) {
  const Pixels below = Pixels::mask(ctx, ctx[destination], "destination");
  const Pixels above = Pixels::mask(ctx, ctx[source], "source");
  const Extent &e = below.extent(), &s = above.extent();
  if (s.count != 1 && s.count != e.count)
    throw Error(HEDDLE_INVALID_ARGUMENT, "source has " + std::to_string(s.count) +
                                             " masks, destination " + std::to_string(e.count) +
                                             ". Give one, or one for each.");
  const std::int64_t left = ctx[x], top = ctx[y];
  const std::string how = ctx[operation];
  const Canvas to = Canvas::mask(ctx, e);
  to.copy(below);
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t row = 0; row < covered(e.height, top, s.height); ++row)
      for (std::int64_t column = 0; column < covered(e.width, left, s.width); ++column) {
        float& value = *to.at(i, top + row, left + column);
        value = composed(how, value, *above.at(i, row, column));
      }
  std::for_each(to.data(), to.data() + to.size(),
                [](float& value) { value = std::clamp(value, 0.0f, 1.0f); });
  ctx[out] = to.tensor();
}
void MaskComposite::infer(Infer& question) {
  if (const auto e = extent_of_mask(question, destination))
    question.out(out, "", HEDDLE_F32, mask_shape(*e));
}

void FeatherMask::execute(Context& ctx) {
  const Pixels from = Pixels::mask(ctx, ctx[mask], "mask");
  const Extent& e = from.extent();
  const std::int64_t l = std::min<std::int64_t>(ctx[left], e.width),
                     r = std::min<std::int64_t>(ctx[right], e.width),
                     t = std::min<std::int64_t>(ctx[top], e.height),
                     b = std::min<std::int64_t>(ctx[bottom], e.height);
  const Canvas to = Canvas::mask(ctx, e);
  to.copy(from);
  const auto rate = [](std::int64_t step, std::int64_t of) {
    return float((double(step) + 1) / double(of));
  };
  // As ComfyUI has it: from the right and from below, the first step falls on the first column and
  // row, the others on the last ones.
  for (std::int64_t i = 0; i < e.count; ++i) {
    for (std::int64_t row = 0; row < e.height; ++row) {
      float* value = to.row(i, row);
      for (std::int64_t c = 0; c < l; ++c) value[c] *= rate(c, l);
      for (std::int64_t c = 0; c < r; ++c) value[c == 0 ? 0 : e.width - c] *= rate(c, r);
    }
    const auto fade = [&](std::int64_t row, float factor) {
      for (std::int64_t c = 0; c < e.width; ++c) to.row(i, row)[c] *= factor;
    };
    for (std::int64_t row = 0; row < t; ++row) fade(row, rate(row, t));
    for (std::int64_t row = 0; row < b; ++row) fade(row == 0 ? 0 : e.height - row, rate(row, b));
  }
  ctx[out] = to.tensor();
}
void FeatherMask::infer(Infer& question) {
  if (const auto e = extent_of_mask(question, mask))
    question.out(out, "", HEDDLE_F32, mask_shape(*e));
}

void GrowMask::execute(Context& ctx) {
  const Pixels from = Pixels::mask(ctx, ctx[mask], "mask");
  const Extent& e = from.extent();
  const std::int64_t steps = ctx[expand];
  const bool has_corners = !ctx[tapered_corners];
  const Canvas to = Canvas::mask(ctx, e);
  std::vector<float> now(std::size_t(e.picture())), next(now.size());
  for (std::int64_t i = 0; i < e.count; ++i) {
    std::copy_n(from.row(i, 0), e.picture(), now.begin());
    for (std::int64_t step = 0; step < std::abs(steps); ++step) {
      check_cancelled(ctx);
      if (!grow_once(now, next, e, steps < 0, has_corners)) break;
      now.swap(next);
    }
    std::copy(now.begin(), now.end(), to.row(i, 0));
  }
  ctx[out] = to.tensor();
}
void GrowMask::infer(Infer& question) {
  if (const auto e = extent_of_mask(question, mask))
    question.out(out, "", HEDDLE_F32, mask_shape(*e));
}

void ThresholdMask::execute(Context& ctx) {
  const Pixels from = Pixels::mask(ctx, ctx[mask], "mask");
  const float least = float(ctx[value]);
  const Canvas to = Canvas::mask(ctx, from.extent());
  for (std::int64_t i = 0; i < to.size(); ++i)
    to.data()[i] = from.row(0, 0)[i] > least ? 1.0f : 0.0f;
  ctx[out] = to.tensor();
}
void ThresholdMask::infer(Infer& question) {
  if (const auto e = extent_of_mask(question, mask))
    question.out(out, "", HEDDLE_F32, mask_shape(*e));
}

void JoinImageWithAlpha::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  Pixels clear = Pixels::mask(ctx, ctx[alpha], "alpha");
  require_channels(from.extent(), 3, "a colour");
  clear.resize(ctx, from.extent().size(), "bilinear");
  Extent e = from.extent();
  e.count = std::max(e.count, clear.extent().count);
  e.channels = 4;
  const Canvas to = Canvas::image(ctx, e);
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x) {
        float* pixel = std::copy_n(from.at(i, y, x), 3, to.at(i, y, x));
        *pixel = 1.0f - *clear.at(i, y, x);
      }
  ctx[out] = to.tensor();
}
void JoinImageWithAlpha::infer(Infer& question) {
  const auto e = extent_of_image(question, image);
  const auto clear = extent_of_mask(question, alpha);
  if (e && clear)
    question.out(out, "", HEDDLE_F32, {std::max(e->count, clear->count), e->height, e->width, 4});
}

void SplitImageWithAlpha::execute(Context& ctx) {
  const Pixels from = Pixels::image(ctx, ctx[image], "image");
  Extent e = from.extent();
  const bool has_alpha = e.channels > 3;
  e.channels = std::min<std::int64_t>(e.channels, 3);
  const Canvas colours = Canvas::image(ctx, e),
               clear = Canvas::mask(ctx, {e.count, e.height, e.width});
  for (std::int64_t i = 0; i < e.count; ++i)
    for (std::int64_t y = 0; y < e.height; ++y)
      for (std::int64_t x = 0; x < e.width; ++x) {
        const float* pixel = from.at(i, y, x);
        std::copy_n(pixel, e.channels, colours.at(i, y, x));
        *clear.at(i, y, x) = has_alpha ? 1.0f - pixel[3] : 0.0f;
      }
  ctx[out] = colours.tensor();
  ctx[mask_out] = clear.tensor();
}
void SplitImageWithAlpha::infer(Infer& question) {
  auto e = extent_of_image(question, image);
  if (!e) return;
  question.out(mask_out, "", HEDDLE_F32, mask_shape(*e));
  e->channels = std::min<std::int64_t>(e->channels, 3);
  question.out(out, "", HEDDLE_F32, image_shape(*e));
}

}  // namespace heddle::image
