#include "radiance_blocks.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <string>

#include <heddle/batch_ops.hpp>
#include <heddle/ops.hpp>

#include "even_sides.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// Squares whose matrices are there at once: of a picture of 1024 x 1024 pixels all would take a
// gigabyte, and what lies between their products four.
constexpr std::int64_t kSquares = 256;
constexpr double kLeastLength = 1e-12;  // of a column, as PyTorch's normalize() has it

// Numbers from 0 to count - 1, times a factor: (count).
Tensor numbers_to(Context& ctx, std::int64_t count, double factor) {
  const Tensor ids = ctx.make({count, 3}, HEDDLE_F32), to = ctx.make({count, 1}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, 1, count}, {0, 0, 0}}, ids);
  ops::copy_into(ctx, ids.slice(1, 2, 3), to);
  constexpr double kEnd = std::numeric_limits<float>::max();
  return ops::scale_clamp(ctx, to, {factor, 0, -kEnd, kEnd}).reshape({count});
}

// 1 / x of numbers above 0.
Tensor inverse_of(Context& ctx, const Tensor& x) {
  const Tensor root = ops::rsqrt(ctx, x);
  return ops::mul(ctx, root, root);
}

// What the columns of matrices (n, K, M) are divided by, inverted: (n, 1, M).
Tensor inverse_lengths(Context& ctx, const Tensor& matrices, const Tensor& ones) {
  const Tensor squares = ctx.make(matrices.shape(), HEDDLE_F32);
  ops::mul_into(ctx, matrices, matrices, squares);
  const Tensor sums = ops::batched_product(ctx, ones, squares, HEDDLE_F32);
  constexpr double kEnd = std::numeric_limits<float>::max();
  return ops::rsqrt(ctx, ops::scale_clamp(ctx, sums, {1, 0, kLeastLength * kLeastLength, kEnd}));
}

// x (n, P, K) times matrices (n, K, M), whose columns have the length 1.
Tensor multiply(Context& ctx, const Tensor& x, const Tensor& matrices) {
  const Tensor ones = ctx.make({matrices.size(0), 1, matrices.size(1)}, HEDDLE_F32);
  ops::fill(ctx, ones, 1);
  const Tensor product = ops::batched_product(ctx, x, matrices, HEDDLE_F32);
  return ops::mul(ctx, product, inverse_lengths(ctx, matrices, ones));
}

}  // namespace

void RadianceImageIn::execute(Context& ctx) {
  const Tensor picture = ctx[x], filter = ctx[weight];
  const std::int64_t patch = filter.size(2);
  if (picture.size(1) != filter.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "Chroma Radiance draws pictures of " + std::to_string(filter.size(1)) +
                    " colours, the latent has " + std::to_string(picture.size(1)) +
                    " channels. Use EmptyChromaRadianceLatentImage and VAELoader's pixel_space.");
  const Tensor whole = even_sides(ctx, picture, patch);
  const Tensor pixels = ops::cast(ctx, whole.permute({0, 2, 3, 1}), HEDDLE_F32);
  const auto step = std::int32_t(patch);
  const Tensor grid = blocks::wide_conv2d(ctx, pixels, filter, ctx[bias],
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  ctx[out] = grid.reshape({grid.size(0), grid.size(1) * grid.size(2), grid.size(3)});
}

void RadianceWaves::execute(Context& ctx) {
  const std::int64_t side = ctx[patch], all = ctx[count];
  const double step = side > 1 ? std::numbers::pi / double(side - 1) : 0;
  const Tensor angles = ops::mul(ctx, numbers_to(ctx, side, step).reshape({side, 1}),
                                 numbers_to(ctx, all, 1).reshape({1, all}));
  // Of one frequency a rotary table is the cosine.
  const Tensor along =
      ops::rope_table(ctx, angles.reshape({side * all, 1}), {1, 0, {2, 0, 0, 0}, 10000}).first;
  const Tensor numbers = numbers_to(ctx, all, 1);
  const Tensor products = ops::mul(ctx, numbers.reshape({all, 1}), numbers.reshape({1, all}));
  constexpr double kEnd = std::numeric_limits<float>::max();
  const Tensor factors =
      inverse_of(ctx, ops::scale_clamp(ctx, products, {1, 1, 0, kEnd})).reshape({1, 1, all, all});
  const Tensor both =
      ops::mul(ctx, along.reshape({1, side, all, 1}), along.reshape({side, 1, 1, all}));
  ctx[out] = ops::mul(ctx, both, factors).reshape({side * side, all * all});
}

void RadiancePixelsIn::execute(Context& ctx) {
  const std::int64_t side = ctx[patch], area = side * side;
  const Tensor patches = as_patches(even_sides(ctx, ctx[x], side), side), places = ctx[waves];
  const std::int64_t batch = patches.size(0), rows = patches.size(1), columns = patches.size(2),
                     colours = patches.size(3), width = colours + places.size(1);
  const Tensor read = ctx.make({batch, rows * columns, area, width}, HEDDLE_F32);
  ops::copy_into(ctx, patches.permute({0, 1, 2, 4, 5, 3}),
                 read.reshape({batch, rows, columns, side, side, width}).slice(5, 0, colours));
  const Tensor zeros = ctx.make({batch, rows * columns, 1, 1}, HEDDLE_F32);
  ops::fill(ctx, zeros, 0);
  ops::add_into(ctx, places.reshape({1, 1, area, places.size(1)}), zeros,
                read.slice(3, colours, width));
  const Tensor made = blocks::wide_linear(ctx, read, ctx[weight], ctx[bias]);
  ctx[out] = made.reshape({batch, rows * columns, area * made.size(3)});
}

void RadianceNerf::execute(Context& ctx) {
  const Tensor given = ctx[pixels], all = ctx[hidden], generator = ctx[weight], scale = ctx[norm];
  const std::int64_t batch = given.size(0), count = given.size(1), width = scale.size(0),
                     area = given.size(2) / width, made = generator.size(0) / 3,
                     wide = made / width;
  const Tensor text_and_image = all.slice(1, all.size(1) - count, all.size(1));
  const Tensor drawn = ctx.make(given.shape(), HEDDLE_F32);
  for (std::int64_t item = 0; item < batch; ++item)
    for (std::int64_t begin = 0; begin < count; begin += kSquares) {
      const std::int64_t end = std::min(begin + kSquares, count), squares = end - begin;
      const auto part = [&](const Tensor& t) {
        return t.slice(0, item, item + 1).slice(1, begin, end);
      };
      const Tensor tokens = ops::contiguous(ctx, part(text_and_image));
      const Tensor matrices =
          ops::linear(ctx, tokens, generator, ctx[bias]).reshape({squares, 3 * made});
      const auto matrix = [&](std::int64_t i, std::int64_t from, std::int64_t to) {
        return matrices.slice(1, i * made, (i + 1) * made).reshape({squares, from, to});
      };
      const Tensor own = part(given).reshape({squares, area, width});
      const Tensor normed = ctx.make(own.shape(), HEDDLE_F32);
      ops::rms_norm_into(ctx, own, scale, ctx[eps], normed);
      const Tensor between =
          ops::gated_activation(ctx, multiply(ctx, normed, matrix(0, width, wide)),
                                multiply(ctx, normed, matrix(1, width, wide)), HEDDLE_ACT_SILU);
      ops::add_into(ctx, own, multiply(ctx, between, matrix(2, wide, width)),
                    part(drawn).reshape({squares, area, width}));
    }
  ctx[out] = drawn;
}

void RadianceLevel::execute(Context& ctx) {
  const Tensor levels = ctx[timestep];
  ctx[out] = inverse_of(ctx, levels).reshape({levels.size(0), 1, 1});
}

template <bool is_filtered>
void RadianceFinalOf<is_filtered>::execute(Context& ctx) {
  const Tensor picture = ctx[x], all = ctx[pixels], scale = ctx[norm];
  const std::int64_t batch = all.size(0), side = ctx[patch], width = scale.size(0),
                     height = picture.size(2), across = picture.size(3),
                     rows = tokens_along(height, side), columns = tokens_along(across, side);
  const Tensor placed = ctx.make({batch, rows * side, columns * side, width}, HEDDLE_F32);
  ops::copy_into(ctx,
                 all.reshape({batch, rows, columns, side, side, width}).permute({0, 1, 3, 2, 4, 5}),
                 placed.reshape({batch, rows, side, columns, side, width}));
  const Tensor normed = ctx.make(placed.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, placed, scale, ctx[eps], normed);
  Tensor colours;
  if constexpr (is_filtered)
    colours = blocks::wide_conv2d(ctx, normed, ctx[weight], ctx[bias],
                                  heddle_conv2d_attrs{{1, 1}, {1, 1, 1, 1}});
  else
    colours = blocks::wide_linear(ctx, normed, ctx[weight], ctx[bias]);
  const Tensor seen = colours.permute({0, 3, 1, 2}).slice(2, 0, height).slice(3, 0, across);
  if (!ctx.has(inverse)) {
    ctx[out] = ops::cast(ctx, seen, picture.dtype());
    return;
  }
  const Tensor drawn = ops::cast(ctx, seen, HEDDLE_F32), from = ops::cast(ctx, picture, HEDDLE_F32);
  const Tensor moved = ops::mul(ctx, ops::combine(ctx, {{1, from}, {-1, drawn}}),
                                ctx[inverse].reshape({1, 1, 1, 1}));
  ctx[out] = ops::cast(ctx, moved, picture.dtype());
}
template struct RadianceFinalOf<true>;
template struct RadianceFinalOf<false>;

}  // namespace heddle::denoisers
