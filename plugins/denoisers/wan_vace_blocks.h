// plugins/denoisers/wan_vace_blocks.h - the block types that Wan VACE has besides Wan's: layers
// beside the model's own that follow given videos, each with a projection of what they make (the
// hint) that is added to the model's tokens. Source of the architecture: WanVACETransformer3DModel
// of diffusers. Several contexts go through the same layers as items of a batch: n of them in a row
// for each of the model's. Other letters as in wan_blocks.h. Blocks are pure and have no instance;
// any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// vace (1|B, n K, F, H, W), of a filter over K channels -> hint (n or n B, L, D).
struct WanVaceIn {
  static constexpr Info info{"wan.vace_in", 1,  "Wan VACE context",
                             "blocks/wan",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vace{"vace"};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Weight before{"before.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight before_bias{"before.bias"};
  static constexpr Output<Tensor> out{"hint"};
  static constexpr auto ports = heddle::ports(vace, weight, bias, before, before_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), the latent's tokens, added to hint (n or n B, L, D) -> (n B, L, D). vace, as
// of WanVaceIn, tells which of both it is.
struct WanVaceStart {
  static constexpr Info info{"wan.vace_start", 1,  "Wan VACE start",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> hint{"hint"};
  static constexpr Input<Tensor> vace{"vace", HEDDLE_PORT_SHAPE};
  static constexpr Output<Tensor> out{"hint"};
  static constexpr auto ports = heddle::ports(hidden, hint, vace, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D) plus, of each of the n contexts, strength (n) times a projection of hint
// (n B, L, D).
struct WanVaceAdd {
  static constexpr Info info{"wan.vace_add", 1,  "Wan VACE hint",
                             "blocks/wan",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> hint{"hint", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> strength{"strength"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(hidden, hint, strength, weight, bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
