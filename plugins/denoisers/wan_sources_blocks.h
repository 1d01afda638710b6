// plugins/denoisers/wan_sources_blocks.h - the block types by which a model of Wan looks at videos
// and pictures beside the one that it draws, as Bernini does: their tokens are behind the video's,
// at the level of the noise that the video is at, and a further turn of all of a head tells which
// source a token is of. Source of the architecture: ComfyUI's context_latents. T tokens of all
// sources; other letters as in wan_blocks.h. Blocks are pure and have no instance; any thread.
#pragma once

#include "wan_blocks.h"

namespace heddle::denoisers {

// sources (1|B, T, 4 C), of each token its cells row by row, of each their channels -> tokens
// (1|B, T, D) f32, of the filter of the video's; without them 0 tokens.
struct WanSourcesIn {
  static constexpr Info info{"wan.sources_in", 1,  "Wan tokens of sources",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> sources{"sources", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(sources, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), then the tokens (1|B, T, D) -> (B, L + T, D) f32; hidden as it is where there
// are none.
struct WanSourcesJoin {
  static constexpr Info info{"wan.sources_join", 1,  "Wan tokens and those of sources",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> shown{"shown"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, shown, out);
  static void execute(Context& ctx);
};

// The rotary table of WanRope, then that of tokens at places (T, 4) f32: frame, row, column and the
// number of the source, from 1 on. Of source n, pair i of a head's d/2 turns by n theta^(-2i/d)
// more. cos, sin: (L + T, d/2) f32.
struct WanSourcesRope {
  using B = WanRope;
  static constexpr Info info{"wan.sources_rope", 1,  "Wan rotary table with sources",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> places{"places", HEDDLE_PORT_OPTIONAL};
  static constexpr auto ports = heddle::ports(B::x, B::before, places, B::axis_0, B::axis_1,
                                              B::axis_2, B::theta, B::cos, B::sin);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
