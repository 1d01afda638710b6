#include "reference_tiles.h"

#include <algorithm>

namespace heddle::samplers {
namespace {

constexpr std::int64_t kTileTokens = 64;

std::int64_t tiles_for(std::int64_t tokens) { return (tokens + kTileTokens - 1) / kTileTokens; }

template <class TokensOf>
Tensor pools_of(Context& ctx, const Value& latents, TokensOf&& tokens_of) {
  std::vector<std::int64_t> counts;
  for (std::uint32_t i = 0; i < latents.count(); ++i)
    counts.push_back(tokens_of(latents.item(i).field("samples").as<Tensor>().shape()));
  return tile_pools(ctx, counts);
}

}  // namespace

bool wants_tiles(const Value& settings) { return settings.get<bool>("reference_tiles", false); }

std::int64_t tokens_of_clip(const Shape& samples, std::int64_t patch) {
  const std::size_t rank = samples.size();
  const auto along = [&](std::size_t axis) { return (samples[axis] + patch - 1) / patch; };
  return (rank == 5 ? samples[2] : 1) * along(rank - 2) * along(rank - 1);
}

std::int64_t tokens_of_sound(const Shape& samples) { return 2 * samples.back(); }

Shape tile_shape(const std::vector<std::int64_t>& counts) {
  Shape shape{0, 0};
  for (const std::int64_t count : counts) {
    shape[0] += tiles_for(count);
    shape[1] += count;
  }
  return shape;
}

Tensor tile_pools(Context& ctx, const std::vector<std::int64_t>& counts) {
  const Shape shape = tile_shape(counts);
  const Tensor pools = ctx.make_host(shape, HEDDLE_F32);
  auto* row = pools.data<float>();
  std::fill(row, row + shape[0] * shape[1], 0.0f);
  std::int64_t at = 0;
  for (const std::int64_t count : counts)
    for (std::int64_t begin = 0; begin < count; begin += kTileTokens) {
      const std::int64_t tokens = std::min(kTileTokens, count - begin);
      std::fill(row + at, row + at + tokens, float(1 / double(tokens)));
      row += shape[1];
      at += tokens;
    }
  return pools;
}

Tensor clip_pools(Context& ctx, const Value& latents, std::int64_t patch) {
  return pools_of(ctx, latents, [&](const Shape& shape) { return tokens_of_clip(shape, patch); });
}

Tensor sound_pools(Context& ctx, const Value& latents) {
  return pools_of(ctx, latents, tokens_of_sound);
}

}  // namespace heddle::samplers
