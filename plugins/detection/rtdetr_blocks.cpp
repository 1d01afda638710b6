#include "rtdetr_blocks.h"

#include <cfloat>

#include "wide_math.h"

namespace heddle::detection {
namespace {

constexpr double kStatisticsEps = 1e-5;  // PyTorch's BatchNorm2d

heddle_activation activation_of(std::int64_t kind) {
  if (kind == RtdetrConv::relu) return HEDDLE_ACT_RELU;
  return kind == RtdetrConv::silu ? HEDDLE_ACT_SILU : HEDDLE_ACT_NONE;
}

// What numbers are multiplied with, and what is added then, (1, 1, 1, C) f32 each.
struct Statistics {
  Tensor scale, shift;
};
Statistics statistics_of(Context& ctx) {
  using B = RtdetrConv;
  const Tensor gain = ctx[B::norm], spread = ctx[B::variance];
  const Shape shape{1, 1, 1, gain.size(0)};
  const auto made = [&] { return ctx.make({gain.size(0)}, HEDDLE_F32); };
  Tensor scale = made(), shift = made();
  ops::scale_clamp_into(ctx, spread, {1, kStatisticsEps, kStatisticsEps, FLT_MAX}, scale);
  const Tensor root = ops::rsqrt(ctx, scale);
  ops::mul_into(ctx, root, gain, scale);
  ops::mul_into(ctx, scale, ctx[B::mean], shift);
  const Tensor negative = ops::combine(ctx, {{-1, shift}}), sum = made();
  ops::add_into(ctx, negative, ctx[B::norm_bias], sum);
  return {scale.reshape(shape), sum.reshape(shape)};
}

// The filters (O, 1, R, S) of channels -> (R, S, O).
Tensor channel_taps(Context& ctx, const Tensor& filter) {
  const std::int64_t channels = filter.size(0), rows = filter.size(2), columns = filter.size(3);
  const Tensor out = ctx.make({rows, columns, channels}, ctx.compute());
  ops::copy_into(ctx, filter.reshape({channels, rows, columns}).permute({1, 2, 0}), out);
  return out;
}

}  // namespace

void RtdetrConv::execute(Context& ctx) {
  const bool is_depthwise = bool(ctx[taps]);
  const Tensor given = narrow(ctx, ctx[x]), weight = is_depthwise ? ctx[taps] : ctx[filter];
  const auto step = std::int32_t(ctx[stride]), before = std::int32_t((weight.size(2) - 1) / 2),
             behind = std::int32_t(weight.size(2) / 2);
  const heddle_conv2d_attrs attrs{{step, step}, {before, before, behind, behind}};
  const std::int64_t first = ctx[from], read = is_depthwise ? weight.size(0) : weight.size(1);
  const Tensor channels = given.slice(3, first, first + read);
  const Tensor added = ctx[bias] ? ctx[bias] : Tensor();
  Tensor made;
  if (is_depthwise) {
    static const Op op(HEDDLE_OP_DEPTHWISE_CONV2D);
    made = ctx.make(ops::conv2d_shape(given, weight, attrs));
    ctx.op(op, {channels.raw(), channel_taps(ctx, weight).raw(), added.raw()}, {made.raw()}, attrs);
  } else {
    made = ops::conv2d(ctx, channels, weight, added, attrs);
  }
  if (ctx[norm]) {
    const Statistics statistics = statistics_of(ctx);
    ops::mul_into(ctx, made, statistics.scale, made);
    ops::add_into(ctx, made, statistics.shift, made);
  }
  if (const heddle_activation f = activation_of(ctx[kind]); f != HEDDLE_ACT_NONE)
    ops::activate_into(ctx, made, f, made);
  if (ctx.has(residual)) ops::add_into(ctx, made, narrow(ctx, ctx[residual]), made);
  ctx[out] = made;
}

void RtdetrPool::execute(Context& ctx) {
  const Tensor grid = ctx[x];
  const std::int64_t height = grid.size(1), width = grid.size(2);
  // The larger of two numbers is the first and what the second is above it.
  const auto larger = [&](const Tensor& a, int axis) {
    const std::int64_t size = a.size(axis);
    const Tensor made = ops::contiguous(ctx, a);
    const Tensor other = ops::contiguous(ctx, a.slice(axis, 1, size)),
                 one = ops::contiguous(ctx, a.slice(axis, 0, size - 1));
    const Tensor above = ops::combine(ctx, {{1, other}, {-1, one}});
    ops::activate_into(ctx, above, HEDDLE_ACT_RELU, above);
    ops::add_into(ctx, one, above, made.slice(axis, 0, size - 1));
    return made;
  };
  Tensor made = grid;
  if (width > 1) made = larger(made, 2);
  if (height > 1) made = larger(made, 1);
  ctx[out] = made;
}

void RtdetrJoin::execute(Context& ctx) {
  std::vector<Tensor> all;
  for (const Input<Tensor>* port : kAll)
    if (ctx.has(*port)) all.push_back(narrow(ctx, ctx[*port]));
  if (ctx[doubles]) all.front() = ops::upsample_nearest(ctx, all.front(), 2);
  Shape shape = all.front().shape();
  shape[3] = 0;
  for (const Tensor& one : all) shape[3] += one.size(3);
  const Tensor made = ctx.make(shape);
  std::int64_t begin = 0;
  for (const Tensor& one : all) {
    ops::copy_into(ctx, one, made.slice(3, begin, begin + one.size(3)));
    begin += one.size(3);
  }
  ctx[out] = made;
}

void RtdetrCells::execute(Context& ctx) {
  constexpr double kLongest = 10000;
  const Tensor grid = ops::contiguous(ctx, ctx[x]);
  const std::int64_t height = grid.size(1), width = grid.size(2), channels = grid.size(3),
                     half = channels / 2, count = height * width;
  const Tensor ids = ctx.make({count, 3}, HEDDLE_F32),
               waves = ctx.make({count, channels}, HEDDLE_F32);
  ops::grid_ids_into(ctx, {{1, height, width}, {0, 0, 0}}, ids);
  for (int axis = 0; axis < 2; ++axis) {
    const Tensor line = ops::contiguous(ctx, ids.slice(1, axis + 1, axis + 2)).reshape({count});
    ops::timestep_embedding_into(ctx, line, {1, kLongest, 0, 0, 0},
                                 waves.slice(1, axis * half, (axis + 1) * half));
  }
  ctx[cells] = grid.reshape({1, count, channels});
  ctx[places] = waves.reshape({1, count, channels});
}

void RtdetrGrid::execute(Context& ctx) {
  const Tensor of = narrow(ctx, ctx[cells]), as = ctx[like];
  ctx[out] = of.reshape({1, as.size(1), as.size(2), of.size(2)});
}

void RtdetrBorder::execute(Context& ctx) {
  const Tensor grid = ctx[x];
  const std::int64_t height = grid.size(1), width = grid.size(2);
  const Tensor made = ctx.make({1, height + 2, width + 2, grid.size(3)});
  ops::fill(ctx, made, 0);
  ops::copy_into(ctx, grid, made.slice(1, 1, height + 1).slice(2, 1, width + 1));
  ctx[out] = made;
}

}  // namespace heddle::detection
