#include "latent_transform_nodes.h"

#include <algorithm>
#include <cmath>

#include "host_latent.h"
#include "latent.h"

namespace heddle::samplers {
namespace {

constexpr std::int64_t kLeastCells = 8;  // that a cut leaves

// Cells [begin, begin + length) along an axis.
struct Stretch {
  std::size_t axis;
  std::int64_t begin, length;
};

Tensor stretch_of(Context& ctx, const LatentCells& cells, const Stretch& part) {
  Shape shape = cells.shape();
  std::int64_t inner = 1;
  for (std::size_t i = part.axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const std::int64_t whole = shape[part.axis] * inner, kept = part.length * inner;
  shape[part.axis] = part.length;
  const Tensor result = ctx.make_host(shape, HEDDLE_F32);
  float* to = result.data<float>();
  for (std::int64_t o = 0; o < cells.count() / whole; ++o)
    to = std::copy_n(cells.item(0) + o * whole + part.begin * inner, kept, to);
  return result;
}

// A negative index counts from the end.
Stretch cut_of(const Shape& shape, std::size_t axis, std::int64_t index, std::int64_t amount) {
  const std::int64_t size = shape[axis];
  if (index >= 0) {
    index = std::min(index, size - 1);
    return {axis, index, std::min(size - index, amount)};
  }
  index = std::max(index, -size);
  return {axis, index + size, std::min(-index, amount)};
}

std::size_t axis_named(const std::string& dim, std::size_t rank) {
  return rank - (dim == "x" ? 1 : dim == "y" ? 2 : 3);
}

Stretch crop_of(std::int64_t size, std::size_t axis, std::int64_t from, std::int64_t length) {
  const std::int64_t begin =
      std::max<std::int64_t>(std::min(from / kDownscale, size - kLeastCells), 0);
  return {axis, begin, std::min(length / kDownscale, size - begin)};
}

int quarters_in(const std::string& rotation) {
  return rotation.starts_with("90")    ? 1
         : rotation.starts_with("180") ? 2
         : rotation.starts_with("270") ? 3
                                       : 0;
}

Shape turned(Shape shape, int quarters) {
  if (quarters % 2 == 1) std::swap(shape[shape.size() - 2], shape.back());
  return shape;
}

// Every plane of cells made anew: place(y, x) is where cell (y, x) of the result comes from.
template <class Place>
Tensor rearranged(Context& ctx, const LatentCells& cells, const Shape& shape, Place&& place) {
  const Tensor result = ctx.make_host(shape, HEDDLE_F32);
  float* to = result.data<float>();
  const std::int64_t plane = cells.height() * cells.width();
  for (std::int64_t p = 0; p < cells.count() / plane; ++p)
    for (std::int64_t y = 0; y < shape[shape.size() - 2]; ++y)
      for (std::int64_t x = 0; x < shape.back(); ++x)
        *to++ = cells.item(0)[p * plane + place(y, x)];
  return result;
}

}  // namespace

void LatentRotate::execute(Context& ctx) {
  const Value from = ctx[samples];
  const LatentCells cells = LatentCells::of(ctx, from, "samples");
  const int quarters = quarters_in(ctx[rotation]);
  const std::int64_t h = cells.height(), w = cells.width();
  ctx[out] = with_new_samples(from, rearranged(ctx, cells, turned(cells.shape(), quarters),
                                               [&](std::int64_t y, std::int64_t x) {
                                                 return quarters == 1 ? (h - 1 - x) * w + y
                                                        : quarters == 2
                                                            ? (h - 1 - y) * w + w - 1 - x
                                                        : quarters == 3 ? x * w + w - 1 - y
                                                                        : y * w + x;
                                               }));
}
void LatentRotate::infer(Infer& question) {
  const auto shape = question.shape(samples, "samples");
  const auto how = question[rotation];
  if (shape && how && shape->size() >= 3)
    question.out(out, "samples", HEDDLE_F32, turned(*shape, quarters_in(*how)));
}

void LatentFlip::execute(Context& ctx) {
  const Value from = ctx[samples];
  const LatentCells cells = LatentCells::of(ctx, from, "samples");
  const bool is_vertical = ctx[flip_method].starts_with('x');
  const std::int64_t h = cells.height(), w = cells.width();
  ctx[out] = with_new_samples(
      from, rearranged(ctx, cells, cells.shape(), [&](std::int64_t y, std::int64_t x) {
        return is_vertical ? (h - 1 - y) * w + x : y * w + w - 1 - x;
      }));
}
void LatentFlip::infer(Infer& question) {
  if (const auto shape = question.shape(samples, "samples"))
    question.out(out, "samples", HEDDLE_F32, *shape);
}

void LatentCrop::execute(Context& ctx) {
  const Value from = ctx[samples];
  const LatentCells cells = LatentCells::of(ctx, from, "samples");
  const std::size_t rank = cells.shape().size();
  const Stretch rows = crop_of(cells.height(), rank - 2, ctx[y], ctx[height]);
  const Stretch columns = crop_of(cells.width(), rank - 1, ctx[x], ctx[width]);
  Shape shape = cells.shape();
  shape[rank - 2] = rows.length;
  shape[rank - 1] = columns.length;
  ctx[out] = with_new_samples(
      from, rearranged(ctx, cells, shape, [&](std::int64_t row, std::int64_t column) {
        return (rows.begin + row) * cells.width() + columns.begin + column;
      }));
}
void LatentCrop::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  const auto left = question[x], top = question[y], w = question[width], h = question[height];
  if (!shape || shape->size() < 3 || !left || !top || !w || !h) return;
  const std::size_t rank = shape->size();
  (*shape)[rank - 2] = crop_of((*shape)[rank - 2], rank - 2, *top, *h).length;
  (*shape)[rank - 1] = crop_of((*shape)[rank - 1], rank - 1, *left, *w).length;
  question.out(out, "samples", HEDDLE_F32, *shape);
}

void LatentCut::execute(Context& ctx) {
  const Value from = ctx[samples];
  const LatentCells cells = LatentCells::of(ctx, from, "samples");
  const std::size_t axis = axis_named(ctx[dim], cells.shape().size());
  ctx[out] = with_new_samples(
      from, stretch_of(ctx, cells, cut_of(cells.shape(), axis, ctx[index], ctx[amount])));
}
void LatentCut::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  const auto how = question[dim];
  const auto from = question[index], count = question[amount];
  if (!shape || shape->size() < 3 || !how || !from || !count) return;
  const std::size_t axis = axis_named(*how, shape->size());
  (*shape)[axis] = cut_of(*shape, axis, *from, *count).length;
  question.out(out, "samples", HEDDLE_F32, *shape);
}

void LatentCutToBatch::execute(Context& ctx) {
  const Value from = ctx[samples];
  const LatentCells cells = LatentCells::of(ctx, from, "samples");
  const std::size_t rank = cells.shape().size(), axis = axis_named(ctx[dim], rank);
  if (axis < 2) {
    ctx[out] = from;
    return;
  }
  // The rest that makes no whole slice is left out.
  const std::int64_t size = std::min(ctx[slice_size], cells.shape()[axis]);
  const std::int64_t slices = cells.shape()[axis] / size;
  Shape shape = cells.shape();
  shape[axis] = size;
  const std::int64_t items = shape[0];
  shape[0] = items * slices;
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < rank; ++i) inner *= shape[i];
  const std::int64_t whole = cells.shape()[axis] * inner, outer = cells.item_size() / whole;
  const Tensor result = ctx.make_host(shape, HEDDLE_F32);
  float* to = result.data<float>();
  for (std::int64_t i = 0; i < items; ++i)
    for (std::int64_t s = 0; s < slices; ++s)
      for (std::int64_t o = 0; o < outer; ++o)
        to = std::copy_n(cells.item(i) + o * whole + s * size * inner, size * inner, to);
  ctx[out] = with_new_samples(from, result);
}
void LatentCutToBatch::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  const auto how = question[dim];
  const auto slice = question[slice_size];
  if (!shape || shape->size() < 3 || !how || !slice) return;
  const std::size_t axis = axis_named(*how, shape->size());
  if (axis >= 2 && (*shape)[axis] > 0) {
    const std::int64_t size = std::min(*slice, (*shape)[axis]);
    (*shape)[0] *= (*shape)[axis] / size;
    (*shape)[axis] = size;
  }
  question.out(out, "samples", HEDDLE_F32, *shape);
}

void TrimVideoLatent::execute(Context& ctx) {
  const Value from = ctx[samples];
  const LatentCells cells = LatentCells::of(ctx, from, "samples");
  const std::int64_t frames = cells.shape()[2], trimmed = ctx[trim_amount];
  if (trimmed >= frames)
    throw Error(HEDDLE_INVALID_ARGUMENT, "trim_amount: " + std::to_string(trimmed) + " of " +
                                             std::to_string(frames) +
                                             " frames would be cut off. Leave one at least.");
  ctx[out] = with_new_samples(from, stretch_of(ctx, cells, {2, trimmed, frames - trimmed}));
}
void TrimVideoLatent::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  const auto trimmed = question[trim_amount];
  if (!shape || shape->size() < 3 || !trimmed || *trimmed >= (*shape)[2]) return;
  (*shape)[2] -= *trimmed;
  question.out(out, "samples", HEDDLE_F32, *shape);
}

void LatentBatchSeedBehavior::execute(Context& ctx) {
  const Value from = ctx[samples];
  const bool is_fixed = ctx[seed_behavior] == "fixed";
  Record to;
  for (std::uint32_t i = 0; i < from.count(); ++i)
    if (from.key(i) != "batch_index") to.set(from.key(i), from.item(i));
  if (is_fixed) {
    const Value index = from.field("batch_index");
    const Value first = index.count() > 0 ? index.item(0) : value_of(std::int64_t{0});
    to.set("batch_index",
           list_of(std::vector<Value>(std::size_t(samples_of(from).size(0)), first)));
  }
  ctx[out] = to.value();
}
void LatentBatchSeedBehavior::infer(Infer& question) {
  if (const auto shape = question.shape(samples, "samples"))
    question.out(out, "samples", HEDDLE_F32, *shape);
}

}  // namespace heddle::samplers
