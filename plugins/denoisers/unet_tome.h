// plugins/denoisers/unet_tome.h - token merging (Bolya and Hoffman 2023,
// https://arxiv.org/abs/2303.17604), as ComfyUI's TomePatchModel has it: in attentions of as many
// tokens as the latent has cells, queries of tokens that look alike become their mean, and what it
// attends to is theirs. Keys and values stay whole. One token of each 2x2 cells is what others are
// merged into; which of the four is drawn once for each block, where ComfyUI draws for each cell at
// each step. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

namespace heddle::denoisers {

// Ports of the blocks that can merge tokens; ratio 0: they do not.
struct MergePorts {
  static constexpr Input<Tensor> cells{"cells", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<double> ratio{"ratio", Widget{}};
  static constexpr Input<std::int64_t> corner{"corner", Widget{}};
};

// Tokens of height x width of which `merged` are merged into those at one corner (0 to 3: rows,
// then columns) of each square.
struct TokenMerge {
  std::int64_t height = 0, width = 0, merged = 0, corner = 0;
  std::int64_t squares() const { return (height / 2) * (width / 2); }
};
// Tells a block of the ratio, where there is one. x: the latent; path: for what is drawn.
void set_merge(Block& block, double ratio, const Source& x, const std::string& path);
// What the ports of a block say; none where its tokens are fewer than the latent's cells.
std::optional<TokenMerge> merge_at(Context& ctx, std::int64_t tokens);

// Attention of q to k, v (B, S, D) by heads; queries are merged by what `alike` (B, S, D') says of
// the tokens.
Tensor attend_merged(Context& ctx, const Tensor& alike, const Tensor& q, const Tensor& k,
                     const Tensor& v, std::int64_t heads, const TokenMerge& merge);

}  // namespace heddle::denoisers
