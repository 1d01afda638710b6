// plugins/denoisers/wan_animate_blocks.h - the block types that Wan 2.2 Animate has besides Wan's:
// a video of poses that is added to the latent's tokens, and what a face does, which layers in
// between look at, each frame's tokens at those of the face in that frame. Source of the
// architecture: WanAnimateTransformer3DModel of diffusers, by the publishers of the model. S frames
// of pixels of a face, K numbers of its motion, M tokens of a face in a frame of the latent; other
// letters as in wan_blocks.h. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// hidden (B, L, D), with the tokens of pose (1|B, C, F', H, W) added from the latent's second frame
// on: its first one is of a reference picture. x is the latent.
struct WanPoseAdd {
  static constexpr Info info{"wan.pose_add", 1, "Wan poses", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> pose{"pose", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, x, pose, weight, bias, out);
  static void execute(Context& ctx);
};

// motion (1|B, S, K) -> tokens (1|B, F M, D) f32, or (1, 0, D) where S is 0: of `parts` filters
// over time, which make one frame of four, and one token more of each frame. Before them is a frame
// of zeros, and behind them, where the latent's x has more. A filter over time is a matrix for each
// of its three taps, which read a frame and those before it; before the first stands that one.
struct WanFaceIn {
  static constexpr Info info{"wan.face_in", 1, "Wan face", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> motion{"motion"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> parts{"parts", Widget{.number = 4}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight first[3] = {Weight{"first.0.weight", HEDDLE_USE_LINEAR},
                                      Weight{"first.1.weight", HEDDLE_USE_LINEAR},
                                      Weight{"first.2.weight", HEDDLE_USE_LINEAR}};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second[3] = {Weight{"second.0.weight", HEDDLE_USE_LINEAR},
                                       Weight{"second.1.weight", HEDDLE_USE_LINEAR},
                                       Weight{"second.2.weight", HEDDLE_USE_LINEAR}};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight third[3] = {Weight{"third.0.weight", HEDDLE_USE_LINEAR},
                                      Weight{"third.1.weight", HEDDLE_USE_LINEAR},
                                      Weight{"third.2.weight", HEDDLE_USE_LINEAR}};
  static constexpr Weight third_bias{"third.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Weight more{"more"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(
      motion, x, parts, eps, first[0], first[1], first[2], first_bias, second[0], second[1],
      second[2], second_bias, third[0], third[1], third[2], third_bias, last, last_bias, more, out);
  static void execute(Context& ctx);
};

// tokens (1|B, T, D) -> kv (1|B, T, 2 D), keys, then values.
struct WanFaceKeys {
  static constexpr Info info{"wan.face_keys", 1,  "Wan face keys and values",
                             "blocks/wan",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> tokens{"tokens"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 40}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight kv{"kv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight kv_bias{"kv.bias"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Output<Tensor> out{"kv"};
  static constexpr auto ports = heddle::ports(tokens, heads, eps, kv, kv_bias, k_norm, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D) plus what its tokens see of the face in their frame, kv (1|B, F M, 2 D); where
// that has no tokens, hidden as it is. x is the latent.
struct WanFaceAdd {
  static constexpr Info info{"wan.face_add", 1,  "Wan face adapter",
                             "blocks/wan",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> kv{"kv"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 40}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_bias{"q.bias"};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports =
      heddle::ports(hidden, kv, x, heads, eps, q, q_bias, q_norm, proj, proj_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
