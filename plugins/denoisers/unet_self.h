// The self-attention of a transformer in the middle of a UNet, in blocks of its own, so that a
// model can do without it: left out (heddle_model_service), the values stand for what is attended
// to. That is Perturbed-Attention Guidance's model (https://arxiv.org/abs/2403.17377). Stateless.
#pragma once

#include <string>

#include <heddle/model.hpp>
#include <heddle/node.hpp>

#include "unet_names.h"
#include "unet_tiles.h"

namespace heddle::denoisers {

// tokens (B, S, D) -> asked (B, S, 2 D), queries and keys, and attended (B, S, D), values.
// keys_of, values_of (B, S, D): what these are made of, where it is not the normed tokens.
struct UnetSelfIn {
  static constexpr Info info{"unet.self.in", 1,  "UNet self-attention's queries, keys, values",
                             "blocks/unet",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<Tensor> keys_of{"keys_of", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> values_of{"values_of", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight qk{"qk.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> asked{"asked"};
  static constexpr Output<Tensor> attended{"attended"};
  static constexpr auto ports =
      heddle::ports(tokens, keys_of, values_of, eps, norm, norm_bias, qk, v, asked, attended);
  static void execute(Context& ctx);
};

// asked (B, S, 2 D), attended (B, S, D): values -> attended (B, S, D), by heads. latent: where
// there are tiles (unet_tiles.h).
struct UnetSelf : TilePorts {
  static constexpr Info info{"unet.self",   1,  "UNet self-attention",
                             "blocks/unet", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> asked{"asked"};
  static constexpr Input<Tensor> values{"attended"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Output<Tensor> out{"attended"};
  static constexpr auto ports =
      heddle::ports(asked, values, heads, latent, tile, swap, depth, deepens, draw, out);
  static void execute(Context& ctx);
};

// asked (B, S, 2 D) -> attended (B, S) f32: how much all tokens attend to each, as the mean over
// the heads: of S in all.
struct UnetSelfAttended {
  static constexpr Info info{"unet.self.attended", 1,  "UNet tokens' share of self-attention",
                             "blocks/unet",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> asked{"asked"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Output<Tensor> out{"attended"};
  static constexpr auto ports = heddle::ports(asked, heads, out);
  static void execute(Context& ctx);
};

// Where a self-attention stands: in the middle, which guidance may leave out by the path
// "middle.1.transformer.0.self", where hypernetworks change keys and values, and where adapters
// stand behind tiles.
struct UnetSelfPlace {
  const Checkpoint& file;
  const UnetNames& names;
  const UnetPart& part;
  std::string path, module;  // "middle.1.transformer.0", "transformer_blocks.0."
  std::int64_t heads, width;
  Source tokens, x;  // of the transformer; the latent
  const UnetPatches& patches;
};
// Throws where a middle without attention is to tell of it.
void check_middle(const Checkpoint& file, const UnetNames& names);
// Adds its blocks, and gives what is attended to.
Source add_self_blocks(const UnetSelfPlace& place, Blocks& graph);

}  // namespace heddle::denoisers
