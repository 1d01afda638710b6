#include "latent_math_nodes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <heddle/checked.hpp>

#include "host_latent.h"
#include "latent.h"

namespace heddle::samplers {
namespace {

using Mixer = std::function<float(float, float)>;

// Number by number, the second in the grid and the batch of the first.
Value mixed(Context& ctx, const Value& first, const Value& second, const std::string& method,
            const Mixer& mix) {
  const LatentCells a = LatentCells::of(ctx, first, "samples1");
  LatentCells b = LatentCells::of(ctx, second, "samples2");
  b.fit(ctx, a, method);
  const Tensor result = ctx.make_host(a.shape(), HEDDLE_F32);
  float* to = result.data<float>();
  for (std::int64_t i = 0; i < a.items(); ++i)
    to = std::transform(a.item(i), a.item(i) + a.item_size(), b.item(i), to, mix);
  return with_new_samples(first, result);
}

template <class In, class Out>
void infer_as(Infer& question, const In& in, const Out& out) {
  if (const auto shape = question.shape(in, "samples"))
    question.out(out, "samples", HEDDLE_F32, *shape);
}

// The number of cells in one channel, and where the channels of one cell lie.
float length_of(const float* cell, std::int64_t channels, std::int64_t step) {
  double sum = 0;
  for (std::int64_t c = 0; c < channels; ++c) sum += double(cell[c * step]) * cell[c * step];
  return float(std::sqrt(sum));
}

// How much of what is pasted shows at a place of an axis: it fades over `feather` cells at both
// ends, where these lie inside.
struct Fade {
  std::int64_t feather, size;
  bool at_begin, at_end;

  float at(std::int64_t place) const {
    float weight = 1;
    const auto rate = [&](std::int64_t t) { return float(1.0 / double(feather) * double(t + 1)); };
    if (at_begin && place < feather) weight *= rate(place);
    if (at_end && size - 1 - place < feather) weight *= rate(size - 1 - place);
    return weight;
  }
};

// What a grid at (x, y) covers of another.
struct Overlap {
  std::int64_t height, width;
};
Overlap overlap_of(const LatentCells& to, const LatentCells& from, std::int64_t x, std::int64_t y) {
  return {std::clamp<std::int64_t>(to.height() - y, 0, from.height()),
          std::clamp<std::int64_t>(to.width() - x, 0, from.width())};
}

void check_planes(const LatentCells& to, const LatentCells& from) {
  const Shape &a = to.shape(), &b = from.shape();
  if (a.size() != b.size() || !std::equal(a.begin() + 1, a.end() - 2, b.begin() + 1, b.end() - 2))
    throw Error(HEDDLE_INVALID_ARGUMENT, "one latent is " + shape_text(a) + ", the other " +
                                             shape_text(b) +
                                             ". Give latents of the same channels and frames.");
}

// weight(item, y, x) of what is pasted at (x, y), the rest of 1 of what is there.
Tensor pasted(Context& ctx, const LatentCells& to, const LatentCells& from, std::int64_t x,
              std::int64_t y,
              const std::function<float(std::int64_t, std::int64_t, std::int64_t)>& weight) {
  check_planes(to, from);
  const Tensor result = ctx.make_host(to.shape(), HEDDLE_F32);
  float* const all = result.data<float>();
  std::copy_n(to.item(0), to.count(), all);
  const Overlap part = overlap_of(to, from, x, y);
  const std::int64_t planes = to.item_size() / (to.height() * to.width());
  for (std::int64_t i = 0; i < to.items(); ++i)
    for (std::int64_t p = 0; p < planes; ++p)
      for (std::int64_t row = 0; row < part.height; ++row)
        for (std::int64_t column = 0; column < part.width; ++column) {
          const float w = weight(i, row, column);
          float& cell = all[((i * planes + p) * to.height() + y + row) * to.width() + x + column];
          cell = from.item(i)[(p * from.height() + row) * from.width() + column] * w +
                 cell * (1.0f - w);
        }
  return result;
}

std::vector<Value> indices(const Value& latent, std::int64_t items) {
  std::vector<Value> list;
  const Value given = latent.field("batch_index");
  for (std::uint32_t i = 0; i < given.count(); ++i) list.push_back(given.item(i));
  if (given.count() == 0)
    for (std::int64_t i = 0; i < items; ++i) list.push_back(value_of(i));
  return list;
}

// "-x": the axis, and that the second comes first.
struct Direction {
  std::size_t axis;
  bool swaps;
};
Direction direction_of(const std::string& dim, std::size_t rank) {
  const std::size_t from_end = dim.ends_with('x') ? 1 : dim.ends_with('y') ? 2 : 3;
  return {rank - from_end, dim.starts_with('-')};
}

}  // namespace

void LatentAdd::execute(Context& ctx) {
  ctx[out] =
      mixed(ctx, ctx[samples1], ctx[samples2], "bilinear", [](float a, float b) { return a + b; });
}
void LatentAdd::infer(Infer& question) { infer_as(question, samples1, out); }

void LatentSubtract::execute(Context& ctx) {
  ctx[out] =
      mixed(ctx, ctx[samples1], ctx[samples2], "bilinear", [](float a, float b) { return a - b; });
}
void LatentSubtract::infer(Infer& question) { infer_as(question, samples1, out); }

void LatentMultiply::execute(Context& ctx) {
  const Value from = ctx[samples];
  const LatentCells cells = LatentCells::of(ctx, from, "samples");
  const float factor = float(ctx[multiplier]);
  const Tensor result = ctx.make_host(cells.shape(), HEDDLE_F32);
  std::transform(cells.item(0), cells.item(0) + cells.count(), result.data<float>(),
                 [&](float value) { return value * factor; });
  ctx[out] = with_new_samples(from, result);
}
void LatentMultiply::infer(Infer& question) { infer_as(question, samples, out); }

void LatentInterpolate::execute(Context& ctx) {
  const Value first = ctx[samples1];
  const LatentCells a = LatentCells::of(ctx, first, "samples1");
  LatentCells b = LatentCells::of(ctx, ctx[samples2], "samples2");
  b.fit(ctx, a, "bilinear");
  const float r = float(ctx[ratio]), rest = float(1 - ctx[ratio]);
  const std::int64_t channels = a.shape()[1], step = a.item_size() / channels;
  const Tensor result = ctx.make_host(a.shape(), HEDDLE_F32);
  std::vector<float> cell(static_cast<std::size_t>(channels));
  for (std::int64_t i = 0; i < a.items(); ++i)
    for (std::int64_t at = 0; at < step; ++at) {
      const float *x = a.item(i) + at, *y = b.item(i) + at;
      const float m1 = length_of(x, channels, step), m2 = length_of(y, channels, step);
      for (std::int64_t c = 0; c < channels; ++c)
        cell[std::size_t(c)] =
            (m1 > 0 ? x[c * step] / m1 : 0) * r + (m2 > 0 ? y[c * step] / m2 : 0) * rest;
      const float m = length_of(cell.data(), channels, 1);
      for (std::int64_t c = 0; c < channels; ++c)
        result.data<float>()[i * a.item_size() + c * step + at] =
            (m > 0 ? cell[std::size_t(c)] / m : 0) * (m1 * r + m2 * rest);
    }
  ctx[out] = with_new_samples(first, result);
}
void LatentInterpolate::infer(Infer& question) { infer_as(question, samples1, out); }

void LatentBlend::execute(Context& ctx) {
  const float f = float(ctx[blend_factor]), rest = float(1 - ctx[blend_factor]);
  ctx[out] = mixed(ctx, ctx[samples1], ctx[samples2], "bicubic",
                   [&](float a, float b) { return a * f + b * rest; });
}
void LatentBlend::infer(Infer& question) { infer_as(question, samples1, out); }

void LatentComposite::execute(Context& ctx) {
  const Value below = ctx[samples_to];
  const LatentCells to = LatentCells::of(ctx, below, "samples_to");
  const LatentCells from = LatentCells::of(ctx, ctx[samples_from], "samples_from");
  const std::int64_t left = ctx[x] / kDownscale, top = ctx[y] / kDownscale,
                     fading = ctx[feather] / kDownscale;
  const Overlap part = overlap_of(to, from, left, top);
  const Fade rows{fading, part.height, top != 0, top + part.height < to.height()};
  const Fade columns{fading, part.width, left != 0, left + part.width < to.width()};
  ctx[out] = with_new_samples(
      below,
      pasted(ctx, to, from, left, top, [&](std::int64_t, std::int64_t row, std::int64_t column) {
        return fading == 0 ? 1.0f : rows.at(row) * columns.at(column);
      }));
}
void LatentComposite::infer(Infer& question) { infer_as(question, samples_to, out); }

void LatentCompositeMasked::execute(Context& ctx) {
  const Value below = ctx[destination];
  const LatentCells to = LatentCells::of(ctx, below, "destination");
  LatentCells from = LatentCells::of(ctx, ctx[source], "source");
  if (ctx[resize_source]) from.resize(ctx, to.height(), to.width(), "bilinear", false);
  std::optional<LatentCells> selected;
  if (ctx.has(mask)) {
    selected = LatentCells::mask(ctx, ctx[mask], "mask");
    selected->resize(ctx, from.height(), from.width(), "bilinear", false);
  }
  ctx[out] = with_new_samples(
      below, pasted(ctx, to, from, ctx[x] / kDownscale, ctx[y] / kDownscale,
                    [&](std::int64_t i, std::int64_t row, std::int64_t column) {
                      return selected ? selected->item(i)[row * from.width() + column] : 1.0f;
                    }));
}
void LatentCompositeMasked::infer(Infer& question) { infer_as(question, destination, out); }

void LatentBatch::execute(Context& ctx) {
  const Value first = ctx[samples1], second = ctx[samples2];
  const LatentCells a = LatentCells::of(ctx, first, "samples1");
  LatentCells b = LatentCells::of(ctx, second, "samples2");
  b.fit(ctx, a, "bilinear");
  Shape shape = a.shape();
  shape[0] = checked_sum({a.items(), b.items()}, "the batch");
  const Tensor all = ctx.make_host(shape, HEDDLE_F32);
  std::copy_n(b.item(0), b.count(), std::copy_n(a.item(0), a.count(), all.data<float>()));
  std::vector<Value> index = indices(first, a.items());
  for (Value& i : indices(second, b.items())) index.push_back(std::move(i));
  ctx[out] = Record(first).set("samples", value_of(all)).set("batch_index", list_of(index)).value();
}
void LatentBatch::infer(Infer& question) {
  auto shape = question.shape(samples1, "samples");
  const auto other = question.shape(samples2, "samples");
  if (!shape || !other || shape->empty() || other->empty()) return;
  (*shape)[0] = checked_sum({(*shape)[0], (*other)[0]}, "the batch");
  question.out(out, "samples", HEDDLE_F32, *shape);
}

void LatentConcat::execute(Context& ctx) {
  const Value first = ctx[samples1];
  const LatentCells a = LatentCells::of(ctx, first, "samples1");
  const LatentCells b = LatentCells::of(ctx, ctx[samples2], "samples2");
  const Direction direction = direction_of(ctx[dim], a.shape().size());
  const std::size_t axis = direction.axis;
  Shape shape = a.shape(), other = b.shape();
  bool fits = shape.size() == other.size() && axis > 0;
  for (std::size_t i = 1; fits && i < shape.size(); ++i) fits = i == axis || shape[i] == other[i];
  if (!fits)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples1 is " + shape_text(shape) + ", samples2 " +
                                             shape_text(other) +
                                             ". They may differ along this axis alone.");
  shape[axis] = checked_sum({shape[axis], other[axis]}, "the axis");
  const Tensor all = ctx.make_host(shape, HEDDLE_F32);
  const auto inner = [&](const LatentCells& cells) {
    std::int64_t count = 1;
    for (std::size_t i = axis; i < cells.shape().size(); ++i) count *= cells.shape()[i];
    return count;
  };
  const LatentCells &left = direction.swaps ? b : a, &right = direction.swaps ? a : b;
  const std::int64_t l = inner(left), r = inner(right), outer = a.item_size() / inner(a);
  float* to = all.data<float>();
  for (std::int64_t i = 0; i < a.items(); ++i)
    for (std::int64_t o = 0; o < outer; ++o) {
      to = std::copy_n(left.item(i) + o * l, l, to);
      to = std::copy_n(right.item(i) + o * r, r, to);
    }
  ctx[out] = with_new_samples(first, all);
}
void LatentConcat::infer(Infer& question) {
  auto shape = question.shape(samples1, "samples");
  const auto other = question.shape(samples2, "samples");
  const auto how = question[dim];
  if (!shape || !other || !how || shape->size() != other->size() || shape->size() < 4) return;
  const std::size_t axis = direction_of(*how, shape->size()).axis;
  (*shape)[axis] = checked_sum({(*shape)[axis], (*other)[axis]}, "the axis");
  question.out(out, "samples", HEDDLE_F32, *shape);
}

}  // namespace heddle::samplers
