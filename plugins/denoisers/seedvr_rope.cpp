#include <limits>
#include <numbers>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "patches.h"
#include "seedvr_blocks.h"
#include "seedvr_windows.h"

namespace heddle::denoisers {
namespace {

constexpr double kSeedvrTheta = 10000, kSeedvrWaves = 128;  // the most waves, times pi
constexpr double kNoSeedvrBound = std::numeric_limits<double>::infinity();

// The places of tokens in their windows along an axis, (length) f32.
Tensor places_along(Context& ctx, const std::vector<SeedvrRun>& runs, bool centred) {
  std::int64_t length = 0;
  for (const SeedvrRun& run : runs) length += run.length();
  const Tensor all = ctx.make({length, 3}, HEDDLE_F32);
  for (const SeedvrRun& run : runs)
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t begin = run.begin + i * run.size;
      const Tensor rows = all.slice(0, begin, begin + run.size);
      ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{run.size, 1, 1}, {0, 0, 0}}, rows);
      if (centred)
        ops::scale_clamp_into(
            ctx, rows,
            {run.size > 1 ? 2.0 / double(run.size - 1) : 0.0, -1, -kNoSeedvrBound, kNoSeedvrBound},
            rows);
    }
  return ops::contiguous(ctx, all.slice(1, 0, 1)).reshape({length});
}

// Numbers along an axis, (n), for all tokens of a grid: to (F, H, W, 1).
void spread_along(Context& ctx, const Tensor& numbers, std::size_t axis, const Tensor& to) {
  Shape along{1, 1, 1, 1}, others = to.shape();
  along[axis] = numbers.size(0);
  others[axis] = 1;
  const Tensor zeros = ctx.make(others, HEDDLE_F32);
  ops::fill(ctx, zeros, 0);
  ops::add_into(ctx, numbers.reshape(along), zeros, to);
}

// Angles of waves that grow by equal steps: of places (n) -> (n, pairs).
Tensor wave_angles(Context& ctx, const Tensor& places, std::int64_t pairs) {
  const Tensor waves = ctx.make({pairs, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{pairs, 1, 1}, {0, 0, 0}}, waves);
  const double step = pairs > 1 ? (kSeedvrWaves - 1) / double(pairs - 1) : 0;
  ops::scale_clamp_into(
      ctx, waves, {step * std::numbers::pi, std::numbers::pi, -kNoSeedvrBound, kNoSeedvrBound},
      waves);
  const Tensor angles = ctx.make({places.size(0), pairs}, HEDDLE_F32);
  ops::mul_into(ctx, places.reshape({places.size(0), 1}),
                ops::contiguous(ctx, waves.slice(1, 0, 1)).reshape({1, pairs}), angles);
  return angles;
}

// A table for a grid of video tokens and a text behind them.
struct Table {
  SeedvrGrid grid;
  std::int64_t text, half, pairs;

  std::int64_t length() const { return grid[0] * grid[1] * grid[2]; }
};

using Windows = std::array<std::vector<SeedvrRun>, 3>;

std::pair<Tensor, Tensor> language_table(Context& ctx, const Table& t, const Windows& windows) {
  // A fourth axis, where all are 0, takes the pairs that are not turned.
  const std::int64_t rest = t.half - 3 * t.pairs, axes = rest > 0 ? 4 : 3;
  const Tensor ids = ctx.make({t.length() + t.text, axes}, HEDDLE_F32);
  ops::fill(ctx, ids, 0);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Tensor places = places_along(ctx, windows[axis], false);
    if (axis == 0)
      places = ops::scale_clamp(ctx, places, {1, double(t.text), -kNoSeedvrBound, kNoSeedvrBound});
    spread_along(ctx, places, axis,
                 ids.slice(0, 0, t.length())
                     .slice(1, std::int64_t(axis), std::int64_t(axis) + 1)
                     .reshape({t.grid[0], t.grid[1], t.grid[2], 1}));
    const Tensor words = places_along(ctx, {{0, t.text, 1}}, false);
    ops::copy_into(ctx, words.reshape({t.text, 1}),
                   ids.slice(0, t.length(), t.length() + t.text)
                       .slice(1, std::int64_t(axis), std::int64_t(axis) + 1));
  }
  const auto dim = checked_cast<std::int32_t>(2 * t.pairs, "pairs");
  return ops::rope_table(
      ctx, ids,
      heddle_rope_table_attrs{
          std::int32_t(axes), 0, {dim, dim, dim, std::int32_t(2 * rest)}, kSeedvrTheta});
}

std::pair<Tensor, Tensor> pixel_table(Context& ctx, const Table& t, const Windows& windows) {
  const Tensor angles = ctx.make({t.length() + t.text, t.half}, HEDDLE_F32);
  ops::fill(ctx, angles, 0);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const Tensor own = wave_angles(ctx, places_along(ctx, windows[axis], true), t.pairs);
    Shape along{1, 1, 1, t.pairs}, others{t.grid[0], t.grid[1], t.grid[2], 1};
    along[axis] = own.size(0);
    others[axis] = 1;
    const Tensor zeros = ctx.make(others, HEDDLE_F32);
    ops::fill(ctx, zeros, 0);
    const std::int64_t begin = std::int64_t(axis) * t.pairs;
    ops::add_into(ctx, own.reshape(along), zeros,
                  angles.slice(0, 0, t.length())
                      .slice(1, begin, begin + t.pairs)
                      .reshape({t.grid[0], t.grid[1], t.grid[2], t.pairs}));
  }
  // A wave of period 2 pi: cosine and sine of each angle.
  const std::int64_t count = angles.count();
  const Tensor both = ctx.make({count, 2}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, angles.reshape({count}), {1, kSeedvrTheta, 0, 1, 0}, both);
  const auto part = [&](std::int64_t i) {
    return ops::contiguous(ctx, both.slice(1, i, i + 1)).reshape(angles.shape());
  };
  return {part(0), part(1)};
}

}  // namespace

void SeedvrRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const Table table{
      {frame_count(latent), tokens_along(height_of(latent)), tokens_along(width_of(latent))},
      ctx[context].size(1),
      ctx[head] / 2,
      ctx[pairs]};
  const Windows windows = seedvr_windows(table.grid, ctx[shifted]);
  const auto [c, s] =
      ctx[of_language] ? language_table(ctx, table, windows) : pixel_table(ctx, table, windows);
  ctx[cos] = c;
  ctx[sin] = s;
}

}  // namespace heddle::denoisers
