#include "unet_tiles.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"

namespace heddle::denoisers {
namespace {

// The number of parts that a side of `length` falls into.
std::int64_t parts_of(std::int64_t length, std::int64_t least, std::int64_t swap,
                      std::uint64_t draw) {
  std::vector<std::int64_t> parts;
  for (std::int64_t i = std::min(least, length); i <= length; ++i)
    if (length % i == 0 && std::int64_t(parts.size()) < std::max<std::int64_t>(swap, 1))
      parts.push_back(length / i);
  return parts.size() < 2 ? parts.front() : parts[draw % (parts.size() - 1)];
}

Tensor attend(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t heads) {
  const auto split = [&](const Tensor& x) { return blocks::split_heads(x, heads); };
  return blocks::join_heads(ops::attention(ctx, split(q), split(k), split(v), {},
                                           1 / std::sqrt(double(q.size(2) / heads))));
}

}  // namespace

std::optional<Tiles> tiles_of(std::int64_t tokens, std::int64_t latent_height,
                              std::int64_t latent_width, const TilesPatch& patch,
                              std::int64_t draw) {
  constexpr std::int64_t kDeepest = 20;
  const std::int64_t cells = latent_height * latent_width;
  std::int64_t level = 0;
  while (level <= patch.depth && level < kDeepest && tokens << (2 * level) != cells) ++level;
  if (patch.tile <= 0 || level > patch.depth || level == kDeepest) return std::nullopt;
  const double aspect = double(latent_width) / double(latent_height);
  const auto first = std::int64_t(std::nearbyint(std::sqrt(double(tokens) * aspect))),
             second = std::int64_t(std::nearbyint(std::sqrt(double(tokens) / aspect)));
  if (first < 1 || second < 1) return std::nullopt;
  const std::int64_t least = patch.tile << (patch.deepens ? level : 0);
  const auto drawn = std::uint64_t(draw);
  Tiles tiles{.down = parts_of(first, least, patch.swap, drawn),
              .across = parts_of(second, least, patch.swap, drawn / 8191)};
  if (tiles.count() == 1) return std::nullopt;
  if (first * second != tokens)
    throw Error(HEDDLE_UNSUPPORTED,
                "HyperTile cannot divide " + std::to_string(tokens) + " tokens of a latent of " +
                    std::to_string(latent_height) + "x" + std::to_string(latent_width) +
                    " into tiles. Draw a picture whose sides are multiples of 64, or leave it "
                    "out.");
  tiles.height = first / tiles.down;
  tiles.width = second / tiles.across;
  return tiles;
}

void set_tiles(Block& block, const TilesPatch& patch, const Source& x, const std::string& path) {
  using P = TilePorts;
  if (patch.tile == 0) return;
  block.link(P::latent, x)
      .set(P::tile, patch.tile)
      .set(P::swap, patch.swap)
      .set(P::depth, patch.depth)
      .set(P::deepens, patch.deepens)
      .set(P::draw, draw_of(path));
}

std::optional<Tiles> tiles_at(Context& ctx, std::int64_t tokens) {
  using P = TilePorts;
  if (!ctx.has(P::latent) || ctx[P::tile] == 0) return std::nullopt;
  const Tensor x = ctx[P::latent];
  return tiles_of(tokens, x.size(2), x.size(3),
                  {ctx[P::tile], ctx[P::swap], ctx[P::depth], ctx[P::deepens]}, ctx[P::draw]);
}

Tensor attend_in_tiles(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                       std::int64_t heads, const std::optional<Tiles>& tiles) {
  if (!tiles) return attend(ctx, q, k, v, heads);
  const std::int64_t items = q.size(0), width = q.size(2), count = tiles->count(),
                     each = tiles->height * tiles->width;
  const auto moved = [&](const Tensor& x, const Shape& shape) {
    return ops::contiguous(ctx, x.reshape(shape).permute({0, 1, 3, 2, 4, 5}));
  };
  const Tensor asked =
      moved(q, {items, tiles->down, tiles->height, tiles->across, tiles->width, width})
          .reshape({items * count, each, width});
  const auto parts = [&](const Tensor& x) { return x.reshape({items * count, each, width}); };
  const Tensor seen = attend(ctx, asked, parts(k), parts(v), heads);
  return moved(seen, {items, tiles->down, tiles->across, tiles->height, tiles->width, width})
      .reshape({items, count * each, width});
}

}  // namespace heddle::denoisers
