#include "unet_fit.h"

#include <algorithm>
#include <functional>

#include <heddle/ops.hpp>

#include "plugins/blocks/resample_taps.h"
#include "weighed_sum.h"

namespace heddle::denoisers {
namespace {

constexpr double kAny = 3e38;
constexpr int kRows = 1, kColumns = 2;  // axes of (B, H, W, C)

Tensor cell_of(const Tensor& x, int axis, std::int64_t i) { return x.slice(axis, i, i + 1); }

Shape with_side(const Tensor& x, int axis, std::int64_t side) {
  Shape shape = x.shape();
  shape[std::size_t(axis)] = side;
  return shape;
}

// One axis of x in f32, each cell a sum of those that its taps name.
Tensor summed_along(Context& ctx, const Tensor& x, int axis,
                    const std::vector<std::vector<blocks::Tap>>& cells) {
  constexpr std::size_t kOperands = 4;  // of one op
  const Tensor out = ctx.make(with_side(x, axis, std::int64_t(cells.size())), HEDDLE_F32);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Tensor to = cell_of(out, axis, std::int64_t(i));
    std::vector<ops::Term> terms;
    for (const blocks::Tap& tap : cells[i]) {
      if (terms.size() == kOperands) {
        ops::combine_into(ctx, terms, to);
        terms = {{1, to}};
      }
      terms.push_back({tap.weight, cell_of(x, axis, tap.cell)});
    }
    ops::combine_into(ctx, terms, to);
  }
  return out;
}

// ---- bislerp ----

Tensor affine(Context& ctx, const Tensor& x, double scale, double shift) {
  return ops::scale_clamp(ctx, x, {scale, shift, -kAny, kAny});
}
// 1 where x is above 0, else 0.
Tensor is_positive(Context& ctx, const Tensor& x) {
  constexpr double kSteep = 1e30;
  return ops::scale_clamp(ctx, x, {kSteep, 0, 0, 1});
}

// The sums of a b (B, H, W, C) over the channels: (B, H, W, 1).
Tensor channel_sums(Context& ctx, const Tensor& a, const Tensor& b) {
  const Shape shape = a.shape();
  const Tensor ones = ctx.make({shape[3], 1, 1}, HEDDLE_F32);
  ops::fill(ctx, ones, 1);
  return weighed_sum(ctx,
                     ops::mul(ctx, a, b).reshape({shape[0] * shape[1] * shape[2], shape[3], 1, 1}),
                     ones)
      .reshape({shape[0], shape[1], shape[2], 1});
}

// Angles whose cosines are x, which lies between -1 and 1: Abramowitz and Stegun 4.4.46.
Tensor angles_of(Context& ctx, const Tensor& x) {
  constexpr double kPi = 3.14159265358979323846;
  constexpr double kTerms[] = {-0.0012624911, 0.0066700901, -0.0170881256, 0.0308918810,
                               -0.0501743046, 0.0889789874, -0.2145988016, 1.5707963050};
  const Tensor size = ctx.make_like(x);
  ops::leaky_relu_into(ctx, x, {}, -1, size);
  Tensor sum = affine(ctx, size, kTerms[0], kTerms[1]);
  for (std::size_t i = 2; i < std::size(kTerms); ++i)
    sum = affine(ctx, ops::mul(ctx, sum, size), 1, kTerms[i]);
  const Tensor rest = affine(ctx, size, -1, 1);
  const Tensor root = ops::mul(ctx, rest, ops::rsqrt(ctx, rest));
  const Tensor angle = ops::mul(ctx, sum, root);
  const Tensor is_obtuse = is_positive(ctx, affine(ctx, x, -1, 0));
  return ops::add(ctx, angle, ops::mul(ctx, is_obtuse, affine(ctx, angle, -2, kPi)));
}

Tensor sines_of(Context& ctx, const Tensor& angles) {
  const std::int64_t count = angles.count();
  const Tensor both = ctx.make({count, 2}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, angles.reshape({count}), {1, 10000, 0, 0, 0}, both);
  return ops::contiguous(ctx, both.slice(1, 0, 1)).reshape(angles.shape());
}

// Of pixels a and b (B, H, W, C) those that lie `ratio` (broadcasts) of the way from a to b.
Tensor between(Context& ctx, const Tensor& a, const Tensor& b, const Tensor& ratio) {
  constexpr double kNear = 1e-5, kSafe = 1e-6, kTiny = 1e-30;
  const auto mul = [&](const Tensor& x, const Tensor& y) { return ops::mul(ctx, x, y); };
  const auto sum = [&](const Tensor& x, const Tensor& y) { return ops::add(ctx, x, y); };
  const auto per_length = [&](const Tensor& squares) {
    return ops::rsqrt(ctx, ops::scale_clamp(ctx, squares, {1, 0, kTiny, kAny}));
  };
  const Tensor aa = channel_sums(ctx, a, a), bb = channel_sums(ctx, b, b);
  const Tensor per_a = per_length(aa), per_b = per_length(bb);
  const Tensor cosine = mul(mul(channel_sums(ctx, a, b), per_a), per_b);
  const Tensor is_same = is_positive(ctx, affine(ctx, cosine, 1, kNear - 1)),
               is_opposite = is_positive(ctx, affine(ctx, cosine, -1, kNear - 1));
  const Tensor safe = ops::scale_clamp(ctx, cosine, {1, 0, kSafe - 1, 1 - kSafe});
  const Tensor angle = angles_of(ctx, safe);
  const Tensor per_sine = ops::rsqrt(ctx, mul(affine(ctx, safe, -1, 1), affine(ctx, safe, 1, 1)));
  const Tensor rest = affine(ctx, ratio, -1, 1);
  const Tensor length = sum(mul(mul(aa, per_a), rest), mul(mul(bb, per_b), ratio));
  const Tensor turned = affine(ctx, sum(is_same, is_opposite), -1, 1);
  const auto share = [&](const Tensor& part, const Tensor& per_own) {
    const Tensor sines = mul(sines_of(ctx, mul(angle, part)), per_sine);
    return sum(mul(turned, mul(mul(sines, length), per_own)), mul(is_opposite, part));
  };
  const Tensor of_a = sum(share(rest, per_a), is_same), of_b = share(ratio, per_b);
  return sum(mul(a, of_a), mul(b, of_b));
}

Tensor turned_along(Context& ctx, const Tensor& x, int axis,
                    const std::vector<blocks::CellPair>& cells) {
  const auto side = std::int64_t(cells.size());
  const Shape shape = with_side(x, axis, side);
  const Tensor low = ctx.make(shape, HEDDLE_F32), high = ctx.make(shape, HEDDLE_F32),
               ratio = ctx.make(axis == kRows ? Shape{1, side, 1, 1} : Shape{1, 1, side, 1},
                                HEDDLE_F32);
  for (std::int64_t i = 0; i < side; ++i) {
    const blocks::CellPair& pair = cells[std::size_t(i)];
    ops::copy_into(ctx, cell_of(x, axis, pair.low), cell_of(low, axis, i));
    ops::copy_into(ctx, cell_of(x, axis, pair.high), cell_of(high, axis, i));
    ops::fill(ctx, cell_of(ratio, axis, i), pair.ratio);
  }
  return between(ctx, low, high, ratio);
}

// ---- both ----

Tensor fitted(Context& ctx, const Tensor& x, const blocks::GridSize& to,
              const std::string& method) {
  const blocks::GridSize from{x.size(kRows), x.size(kColumns)};
  if (from == to) return x;
  Tensor made = x;
  if (const auto resampling = blocks::resampling_named(method)) {
    if (from.width != to.width)
      made =
          summed_along(ctx, made, kColumns, blocks::taps_along(from.width, to.width, *resampling));
    if (from.height != to.height)
      made =
          summed_along(ctx, made, kRows, blocks::taps_along(from.height, to.height, *resampling));
  } else if (method == "bislerp") {
    // Sides that stay go through it, too: as in ComfyUI that changes nothing but the last digits.
    made = turned_along(ctx, made, kColumns, blocks::pairs_along(from.width, to.width));
    made = turned_along(ctx, made, kRows, blocks::pairs_along(from.height, to.height));
  } else {
    throw Error(HEDDLE_INVALID_ARGUMENT, "a picture in a UNet is to be resized by '" + method +
                                             "', and there is no such method.");
  }
  return ops::cast(ctx, made, x.dtype());
}

}  // namespace

void UnetShrink::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const double share = 1 / ctx[factor];
  const blocks::GridSize to{blocks::rounded(double(x.size(kRows)) * share),
                            blocks::rounded(double(x.size(kColumns)) * share)};
  if (to.height < 1 || to.width < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "PatchModelAddDownscale: " + std::to_string(x.size(kColumns)) + " x " +
                    std::to_string(x.size(kRows)) + " pixels of a block become " +
                    std::to_string(to.width) + " x " + std::to_string(to.height) +
                    ". Use a smaller downscale_factor, or draw a larger picture.");
  ctx[out] = fitted(ctx, x, to, ctx[method]);
}

void UnetFit::execute(Context& ctx) {
  const Tensor beside = ctx[like];
  ctx[out] = fitted(ctx, ctx[hidden], {beside.size(kRows), beside.size(kColumns)}, ctx[method]);
}

Tensor nearest_fit(Context& ctx, const Tensor& x, std::int64_t height, std::int64_t width) {
  const auto along = [&](const Tensor& from, int axis, std::int64_t side) {
    if (from.size(axis) == side) return from;
    const float scale = float(from.size(axis)) / float(side);
    const Tensor to = ctx.make(with_side(from, axis, side), from.dtype());
    for (std::int64_t i = 0; i < side; ++i)
      ops::copy_into(
          ctx, cell_of(from, axis, std::min(std::int64_t(float(i) * scale), from.size(axis) - 1)),
          cell_of(to, axis, i));
    return to;
  };
  return along(along(x, kColumns, width), kRows, height);
}

Source shrunk(const UnetPatches& patches, int index, bool is_behind, const Source& hidden,
              Blocks& graph) {
  using B = UnetShrink;
  Source made = hidden;
  for (std::size_t n = 0; n < patches.shrinks.size(); ++n) {
    const ShrinkPatch& patch = patches.shrinks[n];
    if (patch.stage != index || patch.is_behind != is_behind) continue;
    Block block = graph.add<B>("shrink." + std::to_string(n));
    block.link(B::hidden, made).set(B::factor, patch.factor).set(B::method, patch.down);
    made = block[B::out];
  }
  return made;
}

void change_stage(const UnetPatches& patches, const std::string& path, std::int64_t channels,
                  std::int64_t first_channels, const FreeUStage& stage, Blocks& graph) {
  using B = UnetFit;
  const auto begin = patches.free_u.begin(),
             middle = begin + std::ptrdiff_t(patches.free_u_before_fit);
  add_free_u({begin, middle}, path + ".free", channels, first_channels, stage, graph);
  if (!patches.shrinks.empty()) {
    // All of the same size after that, so that others find nothing to do.
    Block block = graph.add<B>(path + ".fit");
    block.link(B::hidden, stage.hidden)
        .link(B::like, stage.skip)
        .set(B::method, patches.shrinks.front().up);
    stage.hidden = block[B::out];
  }
  add_free_u({middle, patches.free_u.end()}, path + ".fit.free", channels, first_channels, stage,
             graph);
}

}  // namespace heddle::denoisers
