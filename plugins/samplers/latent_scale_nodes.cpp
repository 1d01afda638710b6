#include "latent_scale_nodes.h"

#include <algorithm>
#include <functional>

#include <heddle/host_memory.hpp>

#include "bislerp.h"
#include "latent.h"
#include "plugins/blocks/resample.h"

namespace heddle::samplers {
namespace {

using blocks::Grids;
using blocks::GridSize;
using blocks::rounded;

constexpr std::int64_t kLeastSide = 64;  // pixels

// The last two axes are the grid; whatever is before them is resized one by one.
Grids grids_of(const Shape& shape) {
  if (shape.size() < 3)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: a latent has at least 3 axes, this has " +
                                             std::to_string(shape.size()) + ". Link a LATENT.");
  Grids grids{1, {shape[shape.size() - 2], shape.back()}, 1};
  for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) grids.outer *= shape[axis];
  return grids;
}

Shape resized(Shape shape, const GridSize& to) {
  shape[shape.size() - 2] = to.height;
  shape.back() = to.width;
  return shape;
}

// REQUIRES: not both sides are 0.
GridSize size_of(const GridSize& from, std::int64_t width, std::int64_t height) {
  const auto other = [](std::int64_t side, std::int64_t known, std::int64_t of) {
    return rounded(double(side) * double(known) / double(of));
  };
  const std::int64_t w = std::max(width, kLeastSide), h = std::max(height, kLeastSide);
  if (width == 0)
    return {h / kDownscale, std::max(kLeastSide, other(from.width, h, from.height)) / kDownscale};
  if (height == 0)
    return {std::max(kLeastSide, other(from.height, w, from.width)) / kDownscale, w / kDownscale};
  return {h / kDownscale, w / kDownscale};
}
GridSize size_by(const GridSize& from, double factor) {
  return {rounded(double(from.height) * factor), rounded(double(from.width) * factor)};
}

// REQUIRES: the axes are (B, C, ..., H, W). What a crop leaves lies with gaps: it is copied first.
void bislerp_whole(const blocks::Source& cells, const Shape& shape, const GridSize& to, float* out,
                   const std::function<void()>& before_row) {
  const auto& [outer, size, inner] = cells.grids;
  std::vector<float> dense;
  dense.reserve(std::size_t(outer * size.height * size.width));
  for (std::int64_t plane = 0; plane < outer; ++plane)
    for (std::int64_t y = 0; y < size.height; ++y)
      dense.insert(dense.end(), cells.row(plane, y), cells.row(plane, y) + size.width);
  const std::int64_t channels = shape.size() > 3 ? shape[1] : shape[0];
  const std::int64_t items = shape.size() > 3 ? shape[0] : 1;
  bislerp(dense.data(), {items, channels, outer / (items * channels), size.height, size.width},
          to.height, to.width, out, before_row);
}

Value scaled(Context& ctx, const Value& latent, const std::string& name, const GridSize& to,
             bool crop = false) {
  const Tensor samples = samples_of(latent);
  const Grids grids = grids_of(samples.shape());
  if (to.height < 1 || to.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: " + std::to_string(grids.size.width) + " x " +
                                             std::to_string(grids.size.height) +
                                             " cells would become " + std::to_string(to.width) +
                                             " x " + std::to_string(to.height) +
                                             ". Ask for at least one cell.");
  const HostFloats values(ctx, samples);
  HostMemory memory(ctx);
  blocks::Source cells = blocks::Source::of(values.data(), grids);
  if (crop) cells = blocks::centre_cropped(cells, to);
  const Tensor result = ctx.make_host(resized(samples.shape(), to), HEDDLE_F32);
  const auto before_row = [&] {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
  };
  if (const auto method = blocks::resampling_named(name))
    blocks::resample(cells, to, *method, result.data<float>(), memory, before_row);
  else
    bislerp_whole(cells, samples.shape(), to, result.data<float>(), before_row);
  return Record(latent).set("samples", value_of(result)).value();
}

template <class Node>
void infer_scaled(Infer& question, const Shape& from, const GridSize& to) {
  question.out(Node::latent, "samples", HEDDLE_F32, resized(from, to));
  question.cost(0, 0, blocks::resampling_bytes(grids_of(from), to));
}

}  // namespace

void LatentUpscale::execute(Context& ctx) {
  const Value from = ctx[samples];
  const std::int64_t w = ctx[width], h = ctx[height];
  if (w == 0 && h == 0) {
    ctx[latent] = from;
    return;
  }
  const GridSize to = size_of(grids_of(samples_of(from).shape()).size, w, h);
  ctx[latent] = scaled(ctx, from, ctx[upscale_method], to, ctx[crop] == "center");
}
void LatentUpscale::infer(Infer& question) {
  const auto shape = question.shape(samples, "samples");
  const auto w = question[width], h = question[height];
  if (!shape || shape->size() < 3 || !w || !h) return;
  if (*w == 0 && *h == 0) {
    question.out(latent, "samples", HEDDLE_F32, *shape);
    question.shares(latent);
  } else {
    infer_scaled<LatentUpscale>(question, *shape, size_of(grids_of(*shape).size, *w, *h));
  }
}

void LatentUpscaleBy::execute(Context& ctx) {
  const Value from = ctx[samples];
  const GridSize to = size_by(grids_of(samples_of(from).shape()).size, ctx[scale_by]);
  ctx[latent] = scaled(ctx, from, ctx[upscale_method], to);
}
void LatentUpscaleBy::infer(Infer& question) {
  const auto shape = question.shape(samples, "samples");
  const auto factor = question[scale_by];
  if (shape && shape->size() >= 3 && factor)
    infer_scaled<LatentUpscaleBy>(question, *shape, size_by(grids_of(*shape).size, *factor));
}

}  // namespace heddle::samplers
