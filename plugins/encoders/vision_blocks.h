// plugins/encoders/vision_blocks.h - the blocks of Qwen2.5-VL's vision tower (vision_model.h).
// Shapes: a picture of h x w patches, S = h w of them, M = S / merge^2 units, D width, H heads of
// d. Hidden states are f32 between blocks, patches in the order of windows (vision_windows.h); only
// operands of matrix products are in the compute type. Blocks are pure and have no instance; any
// thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

// Input ports of every block that has to know the picture's patches.
namespace vision_ports {
constexpr Input<std::int64_t> patch() {
  return Input<std::int64_t>("patch", Widget{.number = 14}, "pixels of a patch's side");
}
constexpr Input<std::int64_t> merge() {
  return Input<std::int64_t>("merge", Widget{.number = 2}, "patches of a unit's side");
}
constexpr Input<std::int64_t> side() {
  return Input<std::int64_t>("side", Widget{.number = 4}, "units of a window's side");
}
}  // namespace vision_ports

// picture (1|2, H, W, 3), normalised -> hidden (1, S, D). A patch stands for two frames, both the
// same where there is one.
struct VisionEmbed {
  static constexpr Info info{"vision.embed",    1,  "Vision tower, patches",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture"};
  static constexpr Input<std::int64_t> patch = vision_ports::patch();
  static constexpr Input<std::int64_t> merge = vision_ports::merge();
  static constexpr Input<std::int64_t> side = vision_ports::side();
  static constexpr Weight first{"first.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight second{"second.weight", HEDDLE_USE_CONV2D};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(picture, patch, merge, side, first, second, out);
  static void execute(Context& ctx);
};

// The shape of the picture -> cos, sin (S, d/2) f32: half of the pairs turn with the patch's row,
// half with its column.
struct VisionRope {
  static constexpr Info info{"vision.rope",     1,  "Vision tower, rotary table",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch = vision_ports::patch();
  static constexpr Input<std::int64_t> merge = vision_ports::merge();
  static constexpr Input<std::int64_t> side = vision_ports::side();
  static constexpr Input<std::int64_t> head{"head", Widget{.number = 80}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(picture, patch, merge, side, head, theta, cos, sin);
  static void execute(Context& ctx);
};

// hidden (1, S, D) -> the same. A patch sees those of its window, or all.
struct VisionLayer {
  static constexpr Info info{"vision.layer",    1,  "Vision tower, layer",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> picture{"picture", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch = vision_ports::patch();
  static constexpr Input<std::int64_t> merge = vision_ports::merge();
  static constexpr Input<std::int64_t> side = vision_ports::side();
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 16}};
  static constexpr Input<bool> sees_all{"sees_all", Widget{.number = 0}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};  // gate, then up
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, cos, sin, picture, patch, merge, side, heads, sees_all, eps, norm1, qkv,
                    qkv_bias, proj, proj_bias, norm2, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (1, S, D) -> tokens (1, M, D'), row after row: each unit's patches side by side, through
// two layers to the language model's width.
struct VisionMerge {
  static constexpr Info info{"vision.merge",    1,  "Vision tower, merger",
                             "blocks/language", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> picture{"picture", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch = vision_ports::patch();
  static constexpr Input<std::int64_t> merge = vision_ports::merge();
  static constexpr Input<std::int64_t> side = vision_ports::side();
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(hidden, picture, patch, merge, side, eps, norm, up,
                                              up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
