// plugins/denoisers/wan_causal_blocks.h - the block types of a causal Wan 2.1, which draws a video
// block of frames by block of frames: the tokens of a block look at those of all frames before it,
// of which each layer is given keys and values. Formulas: Causal Forcing (arXiv 2602.02214) and
// Self Forcing (arXiv 2506.08009), as ComfyUI runs them. P tokens of the frames before, l of a
// block; other letters as in wan_blocks.h. Blocks are pure and have no instance; any thread.
#pragma once

#include "wan_blocks.h"

namespace heddle::denoisers {

// WanRope, of a latent that begins behind the frames of kept (B, P, 2 D). Throws where P is no
// number of whole frames of the latent's size.
struct WanCausalRope {
  static constexpr Info info{"wan.causal_rope", 1,  "Wan rotary table behind frames",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 44}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 42}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 42}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(x, kept, axis_0, axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

// WanLayer, whose tokens also look at kept (B, P, 2 D): keys, rotated, and values. kept_out: those
// of its own tokens, (B, l, 2 D); none without `kept`, which may be of no tokens. Throws where
// there is such an input and devices divide the block.
struct WanCausalLayer {
  using B = WanLayer;
  static constexpr Info info{"wan.causal_layer", 1,  "Wan layer that looks at frames before",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> kept{"kept", HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> kept_out{"kept"};
  static constexpr auto ports = heddle::ports(
      B::hidden, B::mod, B::text_kv, B::vision_kv, B::cos, B::sin, kept, B::heads, B::eps, B::table,
      B::qk, B::qk_bias, B::v, B::v_bias, B::q_norm, B::k_norm, B::proj, B::proj_bias, B::norm,
      B::norm_bias, B::text_q, B::text_q_bias, B::text_q_norm, B::text_proj, B::text_proj_bias,
      B::up, B::up_bias, B::down, B::down_bias, B::out, kept_out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
