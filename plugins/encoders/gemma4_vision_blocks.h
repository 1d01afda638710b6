// plugins/encoders/gemma4_vision_blocks.h - the blocks of what Gemma 4 sees pictures with
// (gemma4_vision_model.h). Shapes: a picture of h x w patches, S = h w of them, row after row,
// M = S / merge^2 tokens, D width, H heads of d, T the language model's width. Hidden states are
// f32 between blocks; only operands of matrix products are in the compute type. Blocks are pure and
// have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

// Input ports of blocks that have to know the picture's patches.
namespace gemma4_ports {
constexpr Input<std::int64_t> patch() {
  return Input<std::int64_t>("patch", Widget{.number = 16}, "pixels of a patch's side");
}
constexpr Input<std::int64_t> merge() {
  return Input<std::int64_t>("merge", Widget{.number = 3}, "patches of a token's side");
}
}  // namespace gemma4_ports

// picture (1, H, W, 3), normalised -> hidden (1, S, D): the pixels of each patch, red, green and
// blue of one after the other, through a matrix, and what `places` (2, n, D) has for the patch's
// column and for its row.
struct Gemma4VisionEmbed {
  static constexpr Info info{"gemma4_vision.embed", 1,  "Gemma 4 vision tower, patches",
                             "blocks/language",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture"};
  static constexpr Input<std::int64_t> patch = gemma4_ports::patch();
  static constexpr Input<std::int64_t> merge = gemma4_ports::merge();
  static constexpr Weight matrix{"matrix", HEDDLE_USE_LINEAR};  // (D, 3 patch^2)
  static constexpr Weight places{"places"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(picture, patch, merge, matrix, places, out);
  static void execute(Context& ctx);
};

// The shape of the picture -> cos, sin (S, d/2) f32: the first half of the pairs turns with the
// patch's column, the second with its row.
struct Gemma4VisionRope {
  static constexpr Info info{"gemma4_vision.rope", 1,  "Gemma 4 vision tower, rotary table",
                             "blocks/language",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch = gemma4_ports::patch();
  static constexpr Input<std::int64_t> merge = gemma4_ports::merge();
  static constexpr Input<std::int64_t> head{"head", Widget{.number = 64}};
  static constexpr Input<double> theta{"theta", Widget{.number = 100}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(picture, patch, merge, head, theta, cos, sin);
  static void execute(Context& ctx);
};

// hidden (1, S, D) -> the same. All patches see all; scores are not divided. Queries and keys are
// normed with weights, values without. `limits`: empty, or between which numbers each matrix takes
// what it is given and leaves what it makes, the least and the most of either, with spaces between:
// four of each of q, k, v, proj, gate, up, down, in this order.
struct Gemma4VisionLayer {
  static constexpr Info info{"gemma4_vision.layer", 1,  "Gemma 4 vision tower, layer",
                             "blocks/language",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<std::string> limits{"limits", Widget{.text = ""}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_norm{"q_norm.weight"};  // (d)
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight after1{"after1.weight"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight gate{"gate.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight after2{"after2.weight"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, cos, sin, limits, eps, norm1, q, k, v, q_norm, k_norm, proj, after1,
                    norm2, gate, up, down, after2, out);
  static void execute(Context& ctx);
};

// hidden (1, S, D) -> tokens (1, M, T), row after row: the mean of merge x merge patches times the
// root of D, less `mean` and times `factor` where a file has them, normed without weights, through
// a matrix.
struct Gemma4VisionPool {
  static constexpr Info info{"gemma4_vision.pool", 1,  "Gemma 4 vision tower, tokens",
                             "blocks/language",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> picture{"picture", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> patch = gemma4_ports::patch();
  static constexpr Input<std::int64_t> merge = gemma4_ports::merge();
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight mean{"mean", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};  // (D)
  static constexpr Weight factor{"factor", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight matrix{"matrix", HEDDLE_USE_LINEAR};  // (T, D)
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports =
      heddle::ports(hidden, picture, patch, merge, eps, mean, factor, matrix, out);
  static void execute(Context& ctx);
};

// Without a tower. picture (1, H, W, 3) -> tokens (1, M, T): the pixels of each square of `patch`
// pixels under a norm, through a matrix and a second norm, what `places` (n, 2, D) has for its
// column and its row, a third norm, one without weights, and a second matrix.
struct Gemma4PixelTokens {
  static constexpr Info info{"gemma4_vision.pixel_tokens",
                             1,
                             "Gemma 4, tokens of pixels",
                             "blocks/language",
                             "",
                             HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> picture{"picture"};
  static constexpr Input<std::int64_t> patch{"patch", Widget{.number = 48}};
  static constexpr Input<double> layer_eps{"layer_eps", Widget{.number = 1e-5}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight pixels{"pixels.weight", HEDDLE_USE_LINEAR};  // (D, 3 patch^2)
  static constexpr Weight pixels_bias{"pixels.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight places{"places"};
  static constexpr Weight norm3{"norm3.weight"};
  static constexpr Weight norm3_bias{"norm3.bias"};
  static constexpr Weight matrix{"matrix", HEDDLE_USE_LINEAR};  // (T, D)
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports =
      heddle::ports(picture, patch, layer_eps, eps, norm1, norm1_bias, pixels, pixels_bias, norm2,
                    norm2_bias, places, norm3, norm3_bias, matrix, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::encoders
