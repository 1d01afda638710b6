#include "sam3_segment_blocks.h"

#include <numbers>

#include "plugins/blocks/wide.h"
#include "wide_math.h"

namespace heddle::detection {
namespace {

// A convolution of 2x2 with strides of 2, normalised over the channels, through a GELU.
Tensor halved(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Tensor& norm, const Tensor& norm_bias, double eps) {
  const Tensor made = blocks::wide_conv2d(ctx, narrow(ctx, x), weight, bias,
                                          heddle_conv2d_attrs{{2, 2}, {0, 0, 0, 0}});
  const Tensor normed = normalised(ctx, made, norm, norm_bias, eps);
  ops::activate_into(ctx, normed, HEDDLE_ACT_GELU, normed);
  return normed;
}

// places (N, 2), x and y from 0 to 1, by waves (2, C / 2): sines, then cosines: (N, C) f32.
Tensor wave_features(Context& ctx, const Tensor& places, const Tensor& waves) {
  const std::int64_t count = places.size(0), half = waves.size(1);
  const auto along = [&](int axis) {
    const Tensor far = ops::scale_clamp(ctx, ops::contiguous(ctx, places.slice(1, axis, axis + 1)),
                                        {2, -1, -1e6, 1e6});
    const Tensor out = ctx.make({count, half}, HEDDLE_F32);
    ops::mul_into(ctx, far, waves.slice(0, axis, axis + 1), out);
    return out;
  };
  const double turn = 2 * std::numbers::pi;
  const Tensor angles = ops::combine(ctx, {{turn, along(0)}, {turn, along(1)}});
  const auto [cosines, sines] = ops::rope_table(ctx, angles.reshape({count * half, 1}),
                                                heddle_rope_table_attrs{1, 0, {2}, 1});
  const Tensor out = ctx.make({count, 2 * half}, HEDDLE_F32);
  ops::copy_into(ctx, sines.reshape({count, half}), out.slice(1, 0, half));
  ops::copy_into(ctx, cosines.reshape({count, half}), out.slice(1, half, 2 * half));
  return out;
}

// The middles of all cells as parts of the picture: (H W, 2), x and y.
Tensor cell_middles(Context& ctx, std::int64_t height, std::int64_t width) {
  const Tensor ids = ctx.make({height * width, 3}, HEDDLE_F32),
               out = ctx.make({height * width, 2}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{1, height, width}, {0, 0.5, 0.5}}, ids);
  ops::scale_clamp_into(ctx, ids.slice(1, 2, 3), {1 / double(width), 0, 0, 1}, out.slice(1, 0, 1));
  ops::scale_clamp_into(ctx, ids.slice(1, 1, 2), {1 / double(height), 0, 0, 1}, out.slice(1, 1, 2));
  return out;
}

// Rows of tables one after another: (rows, width) f32.
Tensor stacked(Context& ctx, const std::vector<Tensor>& tables, std::int64_t width) {
  std::int64_t rows = 0, at = 0;
  for (const Tensor& table : tables) rows += table.count() / width;
  const Tensor out = ctx.make({rows, width}, HEDDLE_F32);
  for (const Tensor& table : tables) {
    const std::int64_t count = table.count() / width;
    ops::copy_into(ctx, table.reshape({count, width}), out.slice(0, at, at + count));
    at += count;
  }
  return out;
}

}  // namespace

void Sam3MaskPrompt::execute(Context& ctx) {
  const Tensor all = ctx[grid];
  const std::int64_t height = all.size(1), width = all.size(2), channels = all.size(3);
  const Tensor base = sum(ctx, all, ctx[no_past].reshape({1, 1, 1, channels}));
  Tensor added;
  if (ctx.has(mask)) {
    const Tensor one = halved(ctx, ctx[mask], ctx[first], ctx[first_bias], ctx[first_norm],
                              ctx[first_norm_bias], ctx[eps]);
    const Tensor two = halved(ctx, one, ctx[second], ctx[second_bias], ctx[second_norm],
                              ctx[second_norm_bias], ctx[eps]);
    added = convolved(ctx, two, ctx[last], ctx[last_bias]);
  } else {
    added = ctx[no_mask].reshape({1, 1, 1, channels});
  }
  ctx[out] = sum(ctx, base, added).reshape({1, height * width, channels});
}

void Sam3Points::execute(Context& ctx) {
  constexpr std::int64_t kKinds = 5;
  const Tensor cells = ctx[grid], where = ctx[points], matrix = ctx[waves];
  const std::int64_t height = cells.size(1), width = cells.size(2), channels = cells.size(3);
  const Tensor table =
      stacked(ctx, {ctx[kind_0], ctx[kind_1], ctx[kind_2], ctx[kind_3], ctx[no_point]}, channels);
  // 1, but 0 of the last kind, whose places do not count.
  const Tensor counts = ctx.make({kKinds, channels}, HEDDLE_F32);
  ops::fill(ctx, counts, 1);
  ops::fill(ctx, counts.slice(0, kKinds - 1, kKinds), 0);
  const Tensor is_point = blocks::wide_embedding(ctx, counts, ctx[kinds]);
  const Tensor placed = ops::add(ctx, ops::mul(ctx, wave_features(ctx, where, matrix), is_point),
                                 blocks::wide_embedding(ctx, table, ctx[kinds]));
  const Tensor all = stacked(ctx, {ctx[object], ctx[quality], ctx[masks], placed}, channels);
  ctx[tokens] = all.reshape({1, all.size(0), channels});
  ctx[places] = wave_features(ctx, cell_middles(ctx, height, width), matrix)
                    .reshape({1, height * width, channels});
}

void Sam3Slots::execute(Context& ctx) {
  const Tensor cells = ctx[grid], is_used = ctx[slots], table = ctx[masks];
  const std::int64_t count = is_used.size(0), channels = table.size(1),
                     each = table.size(0) / count;
  const Tensor odds = is_used.reshape({count, 1}),
               others = ops::scale_clamp(ctx, odds, {-1, 1, 0, 1});
  const auto share = [&](const Weight& of, const Tensor& part) {
    const Tensor out = ctx.make({count, channels}, HEDDLE_F32);
    ops::mul_into(ctx, ops::cast(ctx, ctx[of], HEDDLE_F32), part, out);
    return out;
  };
  const Tensor extra = ops::combine(ctx, {{1, share(used, odds)}, {1, share(unused, others)}});
  const Tensor of_masks =
      sum(ctx, table.reshape({count, each, channels}), extra.reshape({count, 1, channels}));
  const Tensor all = stacked(ctx, {ctx[object], ctx[quality], of_masks}, channels);
  ctx[tokens] = all.reshape({1, all.size(0), channels});
  const std::int64_t height = cells.size(1), width = cells.size(2);
  ctx[places] = wave_features(ctx, cell_middles(ctx, height, width), ctx[waves])
                    .reshape({1, height * width, channels});
}

void Sam3MaskPixels::execute(Context& ctx) {
  const Tensor half = ctx[middle], whole = ctx[fine];
  const std::int64_t height = half.size(1) / 2, width = half.size(2) / 2;
  const Tensor from = ctx[cells];
  const Tensor one =
      sum(ctx,
          doubled(ctx, from.reshape({1, height, width, from.size(2)}), ctx[first], ctx[first_bias]),
          convolved(ctx, half, ctx[middle_conv], ctx[middle_bias]));
  const Tensor normed = normalised(ctx, one, ctx[norm], ctx[norm_bias], ctx[eps]);
  ops::activate_into(ctx, normed, HEDDLE_ACT_GELU, normed);
  const Tensor two = sum(ctx, doubled(ctx, normed, ctx[second], ctx[second_bias]),
                         convolved(ctx, whole, ctx[fine_conv], ctx[fine_bias]));
  ops::activate_into(ctx, two, HEDDLE_ACT_GELU, two);
  ctx[out] = two;
}

}  // namespace heddle::detection
