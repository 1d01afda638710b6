// plugins/denoisers/wan_pose_blocks.h - the block types that Wan Animate 2 has besides Wan's: a
// video of poses goes through the same layers beside the latent, and the latent's tokens look at
// what its layers made of the frame before. Source of the architecture:
// WanAnimate2Transformer3DModel of diffusers, by the publishers of the model. F' frames of poses, P
// tokens of them; other letters as in wan_blocks.h. Without poses P is 0. Blocks are pure and have
// no instance; any thread.
#pragma once

#include "wan_blocks.h"

namespace heddle::denoisers {

// vector (1, 1, D) of the level 1, at which poses are seen in every step.
struct WanPoseVector {
  static constexpr Info info{"wan.pose_vector", 1,  "Wan timestep of poses",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Weight time_in{"time.in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_in_bias{"time.in.bias"};
  static constexpr Weight time_out{"time.out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight time_out_bias{"time.out.bias"};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports =
      heddle::ports(x, time_in, time_in_bias, time_out, time_out_bias, out);
  static void execute(Context& ctx);
};

// pose (1|B, C, F', H, W) -> hidden (B, P, D) f32: its tokens, of which all is known: the channels
// of the mask are 1, and what is known is the latent itself. x tells B.
struct WanPoseIn {
  static constexpr Info info{"wan.pose_in", 1, "Wan poses", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> pose{"pose", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(x, pose, weight, bias, out);
  static void execute(Context& ctx);
};

// The rotary table of poses at (frame + 1, row, column + columns of a frame). cos, sin: (P, d/2)
// f32.
struct WanPoseRope {
  static constexpr Info info{"wan.pose_rope", 1,  "Wan rotary table of poses",
                             "blocks/wan",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> pose{"pose", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 44}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 42}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 42}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(x, pose, axis_0, axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

// WanLayer over the tokens of poses. kept (B, P, 2 D): their keys, rotated, and values.
struct WanPoseLayer {
  using B = WanLayer;
  static constexpr Info info{"wan.pose_layer", 1,  "Wan layer over poses",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Output<Tensor> kept{"kept"};
  static constexpr auto ports = heddle::ports(
      B::hidden, B::mod, B::text_kv, B::vision_kv, B::cos, B::sin, B::heads, B::eps, B::table,
      B::qk, B::qk_bias, B::v, B::v_bias, B::q_norm, B::k_norm, B::proj, B::proj_bias, B::norm,
      B::norm_bias, B::text_q, B::text_q_bias, B::text_q_norm, B::text_proj, B::text_proj_bias,
      B::up, B::up_bias, B::down, B::down_bias, B::out, kept);
  static void execute(Context& ctx);
};

// WanLayer, of which the tokens of frame f also look at those of frame f - 1 of the poses: posed
// (B, P, 2 D). x is the latent. Throws where devices divide the block.
struct WanPosedLayer {
  using B = WanLayer;
  static constexpr Info info{"wan.posed_layer", 1,  "Wan layer that follows poses",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> posed{"posed"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr auto ports = heddle::ports(
      B::hidden, B::mod, B::text_kv, B::vision_kv, B::cos, B::sin, posed, x, B::heads, B::eps,
      B::table, B::qk, B::qk_bias, B::v, B::v_bias, B::q_norm, B::k_norm, B::proj, B::proj_bias,
      B::norm, B::norm_bias, B::text_q, B::text_q_bias, B::text_q_norm, B::text_proj,
      B::text_proj_bias, B::up, B::up_bias, B::down, B::down_bias, B::out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
