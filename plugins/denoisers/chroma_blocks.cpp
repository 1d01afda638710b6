#include "chroma_blocks.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// Rows that a layer computes at once: of many steps there would be gigabytes between its matrices.
constexpr std::int64_t kRows = 4096;

Tensor waves(Context& ctx, const Tensor& numbers, double scale, std::int64_t width) {
  const Tensor made = ctx.make({numbers.size(0), width}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, numbers, {scale, ctx[ChromaVector::max_period], 0, 1, 0}, made);
  return made;
}

Tensor numbers_to(Context& ctx, std::int64_t count) {
  const Tensor ids = ctx.make({count, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, 1, count}, {0, 0, 0}}, ids);
  return ops::contiguous(ctx, ids.slice(1, 2, 3)).reshape({count});
}

Tensor guidance_numbers(Context& ctx) {
  if (ctx.has(ChromaVector::guidance)) {
    const Tensor given = ctx[ChromaVector::guidance];
    return given.reshape({given.count()});
  }
  const Tensor none = ctx.make({1}, HEDDLE_F32);
  ops::fill(ctx, none, 0);
  return none;
}

// (N, G, M width) as rows of one vector each.
Tensor rows_of(const Tensor& x, std::int64_t width) {
  return x.reshape({x.count() / width, width});
}

}  // namespace

void ChromaVector::execute(Context& ctx) {
  const Tensor levels = ctx[timestep], told = guidance_numbers(ctx), matrix = ctx[weight];
  const std::int64_t steps = levels.size(0), items = told.size(0), all = ctx[count],
                     wide = matrix.size(1), quarter = wide / 4;
  const double factor = ctx[scale];
  const Tensor read = ctx.make({steps, items, all, wide}, HEDDLE_F32);
  // `part`, whose rows are those of one axis, at columns from `begin` on of every row.
  const auto put = [&](const Tensor& part, const Shape& shape, std::int64_t begin) {
    const Tensor to = read.slice(3, begin, begin + shape[3]);
    const Tensor zeros = ctx.make(to.shape(), HEDDLE_F32);
    ops::fill(ctx, zeros, 0);
    ops::add_into(ctx, part.reshape(shape), zeros, to);
  };
  put(waves(ctx, levels, factor, quarter), {steps, 1, 1, quarter}, 0);
  put(waves(ctx, told, factor, quarter), {1, items, 1, quarter}, quarter);
  put(waves(ctx, numbers_to(ctx, all), factor, wide - 2 * quarter), {1, 1, all, wide - 2 * quarter},
      2 * quarter);
  const Tensor made = blocks::wide_linear(ctx, rows_of(read, wide), matrix, ctx[bias]);
  ctx[out] = made.reshape({steps, items, all * matrix.size(0)});
}

void ChromaLayer::execute(Context& ctx) {
  const Tensor given = ctx[x], first = ctx[up], second = ctx[down];
  const Tensor rows = rows_of(given, first.size(1));
  const Tensor made = ctx.make(rows.shape(), HEDDLE_F32);
  for (std::int64_t begin = 0; begin < rows.size(0); begin += kRows) {
    const std::int64_t end = std::min(begin + kRows, rows.size(0));
    const Tensor part = rows.slice(0, begin, end);
    const Tensor normed = ctx.make(part.shape());
    ops::rms_norm_into(ctx, part, ctx[norm], ctx[eps], normed);
    const Tensor raised = ops::linear(ctx, normed, first, ctx[up_bias], HEDDLE_ACT_SILU);
    ops::linear_into(ctx, raised, second, ctx[down_bias], HEDDLE_ACT_NONE, part,
                     made.slice(0, begin, end));
  }
  ctx[out] = made.reshape(given.shape());
}

void ChromaVectors::execute(Context& ctx) {
  const Tensor given = ctx[x], matrix = ctx[weight];
  const std::int64_t width = matrix.size(1);
  const Tensor made = blocks::wide_linear(ctx, rows_of(given, width), matrix, ctx[bias]);
  ctx[out] = made.reshape({given.size(0), given.size(1), given.size(2) / width * matrix.size(0)});
}

void ChromaModulation::execute(Context& ctx) {
  const std::int64_t begin = ctx[first] * ctx[width], end = begin + ctx[count] * ctx[width];
  ctx[out] = ops::contiguous(ctx, ctx[all].slice(2, begin, end));
}

}  // namespace heddle::denoisers
