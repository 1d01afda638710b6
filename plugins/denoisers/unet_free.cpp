#include "unet_free.h"

#include <numbers>

#include <heddle/ops.hpp>

#include "weighed_sum.h"

namespace heddle::denoisers {
namespace {

constexpr double kAnything = 3e38;

// The waves of the frequency 1 along a side: cosines and sines (n).
struct Waves {
  Tensor cosines, sines;
};
Waves waves_along(Context& ctx, std::int64_t n) {
  const Tensor ids = ctx.make({n, 3}, HEDDLE_F32), both = ctx.make({n, 2}, HEDDLE_F32);
  ops::grid_ids_into(ctx, {{n, 1, 1}, {0, 0, 0}}, ids);
  const Tensor places = ops::contiguous(ctx, ids.slice(1, 0, 1)).reshape({n});
  ops::timestep_embedding_into(ctx, places, {2 * std::numbers::pi / double(n), 10000, 0, 1, 0},
                               both);
  const auto column = [&](std::int64_t i) {
    return ops::contiguous(ctx, both.slice(1, i, i + 1)).reshape({n});
  };
  return {column(0), column(1)};
}

// What a wave along an axis of pictures makes of them: 1, cosines and sines.
class Side {
 public:
  // axis 1: rows, 2: columns. A side of one pixel has the frequency 0 alone.
  Side(Context& ctx, std::int64_t n, int axis, std::int64_t channels)
      : ctx_(ctx), axis_(axis), channels_(channels), ones_(filled(n)) {
    if (n == 1) return;
    const Waves waves = waves_along(ctx, n);
    const Shape shape = axis == 1 ? Shape{1, n, 1, 1} : Shape{1, 1, n, 1};
    cosines_ = waves.cosines.reshape(shape);
    sines_ = waves.sines.reshape(shape);
  }
  bool has_waves() const { return bool(cosines_); }
  Tensor sum(const Tensor& x) const { return weighed_sum(ctx_, x, ones_); }
  Tensor sum_of_cosines(const Tensor& x) const { return weighed_sum(ctx_, x, spread(cosines_)); }
  Tensor sum_of_sines(const Tensor& x) const { return weighed_sum(ctx_, x, spread(sines_)); }
  // whole + c cos + s sin, of c and s with this axis of size 1.
  Tensor drawn(const Tensor& whole, const Tensor& c, const Tensor& s) const {
    const Tensor a = ops::mul(ctx_, c, cosines_), b = ops::mul(ctx_, s, sines_);
    const Tensor both = ops::combine(ctx_, {{1, a}, {1, b}});
    return ops::add(ctx_, both, whole);
  }

 private:
  Tensor filled(std::int64_t n) const {
    const Tensor all =
        ctx_.make(axis_ == 1 ? Shape{n, 1, channels_} : Shape{1, n, channels_}, HEDDLE_F32);
    ops::fill(ctx_, all, 1);
    return all;
  }
  Tensor spread(const Tensor& wave) const {
    return ops::mul(ctx_, wave.reshape({wave.size(1), wave.size(2), 1}), ones_);
  }

  Context& ctx_;
  const int axis_;
  const std::int64_t channels_;
  Tensor ones_, cosines_, sines_;
};

// The waves of frequency 0 and -1 of x (B, H, W, C) f32 along both sides, the real part, times
// H W: with angles y and x of a pixel, 1 + e^-iy + e^-ix + e^-i(y + x) times the sum over all
// pixels of x times its conjugate.
Tensor low_waves(Context& ctx, const Tensor& x) {
  const Side rows(ctx, x.size(1), 1, x.size(3)), columns(ctx, x.size(2), 2, x.size(3));
  const auto across = [&](const Tensor& line) {
    return columns.has_waves() ? columns.drawn(columns.sum(line), columns.sum_of_cosines(line),
                                               columns.sum_of_sines(line))
                               : columns.sum(line);
  };
  const Tensor whole = across(rows.sum(x));
  if (!rows.has_waves()) return whole;
  const Tensor c = rows.sum_of_cosines(x), s = rows.sum_of_sines(x);
  Tensor cosines = columns.sum(c), sines = columns.sum(s);
  if (columns.has_waves()) {
    // Of cos(y + x) and sin(y + x).
    const Tensor even = ops::combine(
                     ctx, {{1, columns.sum_of_cosines(c)}, {-1, columns.sum_of_sines(s)}}),
                 odd = ops::combine(ctx,
                                    {{1, columns.sum_of_sines(c)}, {1, columns.sum_of_cosines(s)}});
    const Tensor less = ops::combine(ctx, {{-1, even}});
    const Tensor plain_cosines = cosines, plain_sines = sines;
    cosines = columns.drawn(plain_cosines, even, odd);
    sines = columns.drawn(plain_sines, odd, less);
  }
  return rows.drawn(whole, cosines, sines);
}

Tensor filtered(Context& ctx, const Tensor& skip, double s) {
  const Tensor x = ops::cast(ctx, skip, HEDDLE_F32);
  const Tensor low = low_waves(ctx, x);
  const double share = (s - 1) / double(x.size(1) * x.size(2));
  const Tensor out = ctx.make_like(skip);
  ops::combine_into(ctx, {{1, x}, {share, low}}, out);
  return out;
}

// The largest of values (B, n, 1, 1), or the least: (B, 1, 1, 1). Attention that is sharp enough
// sees one value, or equal ones. Of numbers around 0 whose deviation is 1; twice, as a score has
// to be so small that its last digit counts for nothing.
Tensor extreme(Context& ctx, const Tensor& values, double sign) {
  constexpr double kSharp = 1e3, kSharper = 1e7;
  const Tensor asked = ctx.make({values.size(0), 1, 1, 1}, HEDDLE_F32);
  ops::fill(ctx, asked, sign);
  const auto seen = [&](const Tensor& all, double scale) {
    const Tensor out = ctx.make(asked.shape(), HEDDLE_F32);
    ops::attention_into(ctx, asked, all, all, {}, scale, ops::Mask::none, out);
    return out;
  };
  const Tensor nearly = seen(values, kSharp);
  const Tensor rest = ops::add(ctx, values, ops::combine(ctx, {{-1, nearly}}));
  return ops::combine(ctx, {{1, nearly}, {1, seen(rest, kSharper)}});
}

// 1 + (b - 1) m of x (B, H, W, C): (B, H, W, 1).
Tensor factors_by_mean(Context& ctx, const Tensor& x, double b) {
  constexpr double kLittle = 1e-30;
  const std::int64_t items = x.size(0), pixels = x.size(1) * x.size(2), channels = x.size(3);
  const Tensor shares = ctx.make({channels, 1, 1}, HEDDLE_F32);
  ops::fill(ctx, shares, 1 / double(channels));
  const Tensor mean =
      weighed_sum(ctx, ops::contiguous(ctx, x).reshape({items * pixels, channels, 1, 1}), shares)
          .reshape({items, pixels});
  // What is brought to [0, 1] may be shifted and scaled before.
  const Tensor normed = ctx.make(mean.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, mean, {}, {}, kLittle, normed);
  const Tensor values = normed.reshape({items, pixels, 1, 1});
  const Tensor highest = extreme(ctx, values, 1), lowest = extreme(ctx, values, -1);
  const Tensor range = ops::combine(ctx, {{1, highest}, {-1, lowest}});
  const Tensor share = ops::rsqrt(ctx, ops::mul(ctx, range, range));
  const Tensor above = ops::add(ctx, values, ops::combine(ctx, {{-1, lowest}}));
  return ops::scale_clamp(ctx, ops::mul(ctx, above, share), {b - 1, 1, -kAnything, kAnything})
      .reshape({items, x.size(1), x.size(2), 1});
}

}  // namespace

void UnetFree::execute(Context& ctx) {
  const Tensor x = ctx[hidden], made = ctx.make_like(x);
  const std::int64_t channels = x.size(3), half = channels / 2;
  const Tensor first = x.slice(3, 0, half), to = made.slice(3, 0, half);
  ops::copy_into(ctx, x.slice(3, half, channels), made.slice(3, half, channels));
  if (ctx[by_mean])
    ops::mul_into(ctx, first, factors_by_mean(ctx, x, ctx[b]), to);
  else
    ops::combine_into(ctx, {{ctx[b], first}}, to);
  ctx[out] = made;
  ctx[skip_out] = filtered(ctx, ctx[skip], ctx[s]);
}

void add_free_u(const std::vector<FreeUPatch>& patches, const std::string& path,
                std::int64_t channels, std::int64_t first_channels, const FreeUStage& stage,
                Blocks& graph) {
  using B = UnetFree;
  const bool is_first = channels == 4 * first_channels;
  if (!is_first && channels != 2 * first_channels) return;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const FreeUPatch& patch = patches[i];
    Block block = graph.add<B>(path + "." + std::to_string(i));
    block.link(B::hidden, stage.hidden)
        .link(B::skip, stage.skip)
        .set(B::b, is_first ? patch.b1 : patch.b2)
        .set(B::s, is_first ? patch.s1 : patch.s2)
        .set(B::by_mean, patch.by_mean);
    stage.hidden = block[B::out];
    stage.skip = block[B::skip_out];
  }
}

}  // namespace heddle::denoisers
