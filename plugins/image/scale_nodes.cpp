#include "plugins/image/scale_nodes.h"

#include <algorithm>
#include <cmath>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/blocks/resample.h"

namespace heddle::image {
namespace {

using blocks::Grids;
using blocks::GridSize;
using blocks::rounded;

constexpr float kGrey = 0.5f;

Grids grids_of(const Shape& shape, const char* what) {
  if (shape.size() != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string(what) + ": an IMAGE has 4 axes, this has " +
                                             std::to_string(shape.size()) + ". Link an IMAGE.");
  return {shape[0], {shape[1], shape[2]}, shape[3]};
}

Tensor make_picture(Context& ctx, const Grids& grids) {
  return ctx.make_host({grids.outer, grids.size.height, grids.size.width, grids.inner}, HEDDLE_F32);
}

// The sizes that the nodes work out, and that they tell before they run.
GridSize size_of(const GridSize& from, std::int64_t width, std::int64_t height) {
  if (width == 0 && height == 0) return from;
  const auto other = [](std::int64_t side, std::int64_t known, std::int64_t of) {
    return std::max<std::int64_t>(1, rounded(double(side) * double(known) / double(of)));
  };
  if (width == 0) width = other(from.width, height, from.height);
  if (height == 0) height = other(from.height, width, from.width);
  return {height, width};
}
GridSize size_by(const GridSize& from, double factor) {
  return {rounded(double(from.height) * factor), rounded(double(from.width) * factor)};
}
GridSize size_of_pixels(const GridSize& from, double megapixels, std::int64_t steps) {
  const double factor =
      std::sqrt(megapixels * 1024 * 1024 / (double(from.width) * double(from.height)));
  const auto side = [&](std::int64_t length) {
    return rounded(double(length) * factor / double(steps)) * steps;
  };
  return {side(from.height), side(from.width)};
}

GridSize padded_size(const GridSize& from, std::int64_t left, std::int64_t top, std::int64_t right,
                     std::int64_t bottom) {
  return {checked_sum({from.height, top, bottom}, "the height"),
          checked_sum({from.width, left, right}, "the width")};
}

Tensor scaled(Context& ctx, const Tensor& image, const std::string& method, const GridSize& to,
              bool crop = false) {
  const Grids grids = grids_of(image.shape(), "image");
  if (to.height < 1 || to.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "image: " + std::to_string(grids.size.width) + " x " +
                                             std::to_string(grids.size.height) +
                                             " pixels would become " + std::to_string(to.width) +
                                             " x " + std::to_string(to.height) +
                                             ". Ask for a size of at least 1 x 1.");
  if (method == "lanczos" && grids.inner != 3)
    throw Error(HEDDLE_UNSUPPORTED,
                "upscale_method: lanczos takes pictures of 3 channels, this "
                "one has " +
                    std::to_string(grids.inner) + ". Take bicubic.");
  const HostFloats values(ctx, image);
  HostMemory memory(ctx);
  blocks::Source from = blocks::Source::of(values.data(), grids);
  if (crop) from = blocks::centre_cropped(from, to);
  const Tensor picture = make_picture(ctx, {grids.outer, to, grids.inner});
  const auto before_row = [&] {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  };
  if (method == "lanczos")
    blocks::resample_lanczos(from, to, picture.data<float>(), memory, before_row);
  else
    blocks::resample(from, to, blocks::resampling_named(method).value(), picture.data<float>(),
                     memory, before_row);
  return picture;
}

template <class Node>
void infer_size(Infer& question, const std::optional<Shape>& from,
                const std::optional<GridSize>& to) {
  if (from && to)
    question.out(Node::out, "", HEDDLE_F32, {(*from)[0], to->height, to->width, (*from)[3]});
}

template <class Node>
void infer_scaled(Infer& question, const std::optional<Shape>& from,
                  const std::optional<GridSize>& to) {
  infer_size<Node>(question, from, to);
  if (from && to) question.cost(0, 0, blocks::resampling_bytes(grids_of(*from, "image"), *to));
}

std::optional<Shape> picture_shape(const std::optional<Shape>& shape) {
  return shape && shape->size() == 4 ? shape : std::nullopt;
}

}  // namespace

void ImageScale::execute(Context& ctx) {
  const Tensor from = ctx[image];
  const std::int64_t w = ctx[width], h = ctx[height];
  if (w == 0 && h == 0) {
    ctx[out] = from;
    return;
  }
  const GridSize to = size_of(grids_of(from.shape(), "image").size, w, h);
  ctx[out] = scaled(ctx, from, ctx[upscale_method], to, ctx[crop] == "center");
}
void ImageScale::infer(Infer& question) {
  const auto from = picture_shape(question.shape(image));
  const auto w = question[width], h = question[height];
  if (!from || !w || !h) return;
  if (*w == 0 && *h == 0) {
    question.out(out, "", HEDDLE_F32, *from);
    question.shares(out);
  } else {
    infer_scaled<ImageScale>(question, from, size_of({(*from)[1], (*from)[2]}, *w, *h));
  }
}

void ImageScaleBy::execute(Context& ctx) {
  const Tensor from = ctx[image];
  const GridSize to = size_by(grids_of(from.shape(), "image").size, ctx[scale_by]);
  ctx[out] = scaled(ctx, from, ctx[upscale_method], to);
}
void ImageScaleBy::infer(Infer& question) {
  const auto from = picture_shape(question.shape(image));
  const auto factor = question[scale_by];
  if (from && factor)
    infer_scaled<ImageScaleBy>(question, from, size_by({(*from)[1], (*from)[2]}, *factor));
}

void ImageScaleToTotalPixels::execute(Context& ctx) {
  const Tensor from = ctx[image];
  const GridSize to =
      size_of_pixels(grids_of(from.shape(), "image").size, ctx[megapixels], ctx[resolution_steps]);
  ctx[out] = scaled(ctx, from, ctx[upscale_method], to);
}
void ImageScaleToTotalPixels::infer(Infer& question) {
  const auto from = picture_shape(question.shape(image));
  const auto pixels = question[megapixels];
  const auto steps = question[resolution_steps];
  if (from && pixels && steps)
    infer_scaled<ImageScaleToTotalPixels>(
        question, from, size_of_pixels({(*from)[1], (*from)[2]}, *pixels, *steps));
}

void ImagePadForOutpaint::execute(Context& ctx) {
  const Tensor from = ctx[image];
  const Grids grids = grids_of(from.shape(), "image");
  const std::int64_t h = grids.size.height, w = grids.size.width, f = ctx[feathering];
  const std::int64_t l = ctx[left], t = ctx[top], r = ctx[right], b = ctx[bottom];
  const GridSize to = padded_size(grids.size, l, t, r, b);
  const HostFloats values(ctx, from);
  const Tensor picture = make_picture(ctx, {grids.outer, to, grids.inner});
  float* const padded = picture.data<float>();
  std::fill_n(padded, picture.count(), kGrey);
  const std::int64_t row = w * grids.inner;
  for (std::int64_t o = 0; o < grids.outer; ++o)
    for (std::int64_t y = 0; y < h; ++y)
      std::copy_n(values.data() + (o * h + y) * row, row,
                  padded + ((o * to.height + t + y) * to.width + l) * grids.inner);
  const Tensor selected = ctx.make_host({1, to.height, to.width}, HEDDLE_F32);
  float* const strength = selected.data<float>();
  std::fill_n(strength, selected.count(), 1.0f);
  const bool feathers = f > 0 && 2 * f < h && 2 * f < w;
  for (std::int64_t y = 0; y < h; ++y)
    for (std::int64_t x = 0; x < w; ++x) {
      // The distance to the nearest side that is padded.
      std::int64_t d = f;
      if (t != 0) d = std::min(d, y);
      if (b != 0) d = std::min(d, h - y);
      if (l != 0) d = std::min(d, x);
      if (r != 0) d = std::min(d, w - x);
      const double left_over = feathers ? double(f - d) / double(f) : 0.0;
      strength[(t + y) * to.width + l + x] = float(left_over * left_over);
    }
  ctx[out] = picture;
  ctx[mask] = selected;
}
void ImagePadForOutpaint::infer(Infer& question) {
  const auto from = picture_shape(question.shape(image));
  const auto l = question[left], t = question[top], r = question[right], b = question[bottom];
  if (!from || !l || !t || !r || !b) return;
  const GridSize to = padded_size({(*from)[1], (*from)[2]}, *l, *t, *r, *b);
  infer_size<ImagePadForOutpaint>(question, from, to);
  question.out(mask, "", HEDDLE_F32, {1, to.height, to.width});
}

}  // namespace heddle::image
