// plugins/denoisers/wan_talk_blocks.h - the block types of InfiniteTalk and MultiTalk, a model
// patch of Wan 2.1: each layer's tokens look, behind the text, at what is heard in their frame of
// the latent. Of two speakers each token is told whose region it is most like: queries are turned
// by that, and keys by whose sound they are of. Source of the architecture: the publishers'
// multitalk_model, as ComfyUI runs it. P speakers, one or two, M moments, one for each frame of
// pixels and two on both sides, N numbers of a moment, T tokens of a speaker in a frame, K their
// width, S tokens of a frame; other letters as in wan_blocks.h. Blocks are pure and have no
// instance; any thread.
#pragma once

#include "wan_blocks.h"

namespace heddle::denoisers {

// Moments that are heard in the latent's first frame, which holds one of pixels, and in the others,
// which hold four: with two on both sides.
inline constexpr std::int64_t kFirstMoments = 5, kLaterMoments = 8, kMomentsOfStep = 4;

// heard (P, M, N) -> tokens (F, P T, K) f32, of 4 F + 1 moments; without it (1, 0, K). Throws where
// moments are of no whole frames.
struct WanTalkIn {
  static constexpr Info info{"wan.talk_in", 1,  "Wan speakers' sound",
                             "blocks/wan",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> heard{"heard", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight later{"later.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight later_bias{"later.bias"};
  static constexpr Weight middle{"middle.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight middle_bias{"middle.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports =
      heddle::ports(heard, eps, first, first_bias, later, later_bias, middle, middle_bias, last,
                    last_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// regions (2, S + 1): 1 at tokens of a frame where a speaker is, then 1 over how many these are ->
// marks (1, S, D): of each head as many numbers, of which the first two say at which speaker a
// token is, and shares (2, 1) f32, the last column. Without it marks have 0 tokens.
struct WanTalkRegions {
  static constexpr Info info{"wan.talk_regions", 1,  "Wan speakers' regions",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> regions{"regions", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 40}};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 5120}};
  static constexpr Output<Tensor> marks{"marks"};
  static constexpr Output<Tensor> shares{"shares"};
  static constexpr auto ports = heddle::ports(regions, heads, width, marks, shares);
  static void execute(Context& ctx);
};

// WanLayer, whose tokens also look at those of WanTalkIn in their frame; what they see counts
// `strength` times. marks and shares of WanTalkRegions; x is the latent. Throws where the sound is
// of other frames than the latent or the regions of another size, and where devices divide a block
// with regions.
struct WanTalkLayer {
  using B = WanLayer;
  static constexpr Info info{"wan.talk_layer", 1,  "Wan layer that hears speakers",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> heard{"heard"};
  static constexpr Input<Tensor> marks{"marks"};
  static constexpr Input<Tensor> shares{"shares"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<double> strength{"strength", Widget{.number = 1}};
  static constexpr Input<double> talk_eps{"talk_eps", Widget{.number = 1e-5}};
  static constexpr Weight talk_norm{"talk_norm.weight"};
  static constexpr Weight talk_norm_bias{"talk_norm.bias"};
  static constexpr Weight talk_q{"talk_q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight talk_q_bias{"talk_q.bias"};
  static constexpr Weight talk_kv{"talk_kv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight talk_kv_bias{"talk_kv.bias"};
  static constexpr Weight talk_proj{"talk_proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight talk_proj_bias{"talk_proj.bias"};
  static constexpr auto ports = heddle::ports(
      B::hidden, B::mod, B::text_kv, B::vision_kv, B::cos, B::sin, heard, marks, shares, x,
      B::heads, B::eps, strength, talk_eps, B::table, B::qk, B::qk_bias, B::v, B::v_bias, B::q_norm,
      B::k_norm, B::proj, B::proj_bias, B::norm, B::norm_bias, B::text_q, B::text_q_bias,
      B::text_q_norm, B::text_proj, B::text_proj_bias, talk_norm, talk_norm_bias, talk_q,
      talk_q_bias, talk_kv, talk_kv_bias, talk_proj, talk_proj_bias, B::up, B::up_bias, B::down,
      B::down_bias, B::out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
