// plugins/denoisers/unet_tiles.h - self-attention whose queries lie in tiles of the picture
// (HyperTile, https://github.com/tfernd/HyperTile), as ComfyUI has it: tile i of the queries sees
// the i-th part of the keys in their order, which are whole rows, not the tile. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "unet_patches.h"

namespace heddle::denoisers {

// Ports of the blocks that can attend in tiles; tile 0: they do not.
struct TilePorts {
  static constexpr Input<Tensor> latent{"latent", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> tile{"tile", Widget{}};
  static constexpr Input<std::int64_t> swap{"swap", Widget{.number = 1}};
  static constexpr Input<std::int64_t> depth{"depth", Widget{}};
  static constexpr Input<bool> deepens{"deepens", Widget{}};
  static constexpr Input<std::int64_t> draw{"draw", Widget{}};
};

// down x across tiles of height x width tokens.
struct Tiles {
  std::int64_t down = 1, across = 1, height = 0, width = 0;
  std::int64_t count() const { return down * across; }
};
// Of so many tokens of a picture that has this latent; none where they stay together. As in ComfyUI
// the longer side of the latent counts as the tokens' first one, and sides are divided by the least
// divisor that is no shorter than a tile; with `swap` above 2 by one of its first swap - 1 of them.
// `draw` picks that, for all steps of a run, where ComfyUI draws at each. Throws unsupported where
// the tokens are no such rectangle.
std::optional<Tiles> tiles_of(std::int64_t tokens, std::int64_t latent_height,
                              std::int64_t latent_width, const TilesPatch& patch,
                              std::int64_t draw);
// Tells a block of a patch, where there is one. x: the latent; path: for what is drawn.
void set_tiles(Block& block, const TilesPatch& patch, const Source& x, const std::string& path);
// What the ports of a block say.
std::optional<Tiles> tiles_at(Context& ctx, std::int64_t tokens);

// Attention of q, k, v (B, S, D) to each other by heads, in tiles where there are some.
Tensor attend_in_tiles(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                       std::int64_t heads, const std::optional<Tiles>& tiles);

}  // namespace heddle::denoisers
