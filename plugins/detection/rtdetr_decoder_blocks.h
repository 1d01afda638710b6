// plugins/detection/rtdetr_decoder_blocks.h - the decoder of RT-DETR 4 (rtdetr.h), which is
// D-FINE's: queries look at places of three grids, and boxes are told by how likely each of their
// edges is to lie at one of several distances. Boxes are middle, width and height, as parts of the
// picture. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

inline constexpr int kRtdetrLevels = 3;
inline constexpr std::int64_t kRtdetrPoints[kRtdetrLevels] = {3, 6, 3};  // of a head, in each grid
inline constexpr std::int64_t kRtdetrAllPoints = 12;

// Three grids -> the cells that promise most, Q of S: their codes (1, Q, C) f32, and their boxes,
// also before a sigmoid (1, Q, 4) f32. The file's anchors count where there are as many.
struct RtdetrQueries {
  static constexpr Info info{"rtdetr.queries",   1,  "Cells that promise most",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> g0{"g0"};
  static constexpr Input<Tensor> g1{"g1"};
  static constexpr Input<Tensor> g2{"g2"};
  static constexpr Input<Tensor> anchors{"anchors"};
  static constexpr Input<Tensor> valid{"valid"};
  static constexpr Input<std::int64_t> count{"count", Widget{.number = 300}};
  static constexpr Weight file_anchors{"anchors", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight score{"score.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight score_bias{"score.bias"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight third{"third.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight third_bias{"third.bias"};
  static constexpr Output<Tensor> queries{"queries"};
  static constexpr Output<Tensor> logits{"logits"};
  static constexpr Output<Tensor> boxes{"boxes"};
  static constexpr auto ports =
      heddle::ports(g0, g1, g2, anchors, valid, count, file_anchors, proj, proj_bias, norm,
                    norm_bias, score, score_bias, first, first_bias, second, second_bias, third,
                    third_bias, queries, logits, boxes);
  static void execute(Context& ctx);
};

// boxes -> (1, Q, C) f32, from -10 to 10, by two matrices.
struct RtdetrPlaces {
  static constexpr Info info{"rtdetr.places",    1,  "Places of boxes",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> boxes{"boxes"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Output<Tensor> out{"places"};
  static constexpr auto ports = heddle::ports(boxes, first, first_bias, second, second_bias, out);
  static void execute(Context& ctx);
};

// x (1, Q, C), places, boxes and three grids with a border (RtdetrBorder) -> (1, Q, C) f32: for
// each head the mean of cells around points, which the queries choose beside their boxes' middles.
struct RtdetrSample {
  static constexpr Info info{"rtdetr.sample",    1,  "Cells around points",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> places{"places"};
  static constexpr Input<Tensor> boxes{"boxes"};
  static constexpr Input<Tensor> g0{"g0"};
  static constexpr Input<Tensor> g1{"g1"};
  static constexpr Input<Tensor> g2{"g2"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Weight offsets{"offsets.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight offsets_bias{"offsets.bias"};
  static constexpr Weight shares{"shares.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight shares_bias{"shares.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, places, boxes, g0, g1, g2, heads, offsets,
                                              offsets_bias, shares, shares_bias, out);
  static void execute(Context& ctx);
};

// norm(a x + b y), a and b being sigmoids of what a matrix makes of both.
struct RtdetrGate {
  static constexpr Info info{"rtdetr.gate",      1,  "Gate of two streams",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> y{"y"};
  static constexpr Weight gate{"gate.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight gate_bias{"gate.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports = heddle::ports(x, y, gate, gate_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// Boxes that three matrices move: sigmoid(logits + what they make of x), logits between those of
// 0.00001 and 0.99999.
struct RtdetrFirstBoxes {
  static constexpr Info info{"rtdetr.first_boxes", 1,  "First boxes",
                             "blocks/detection",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> logits{"logits"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight third{"third.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight third_bias{"third.bias"};
  static constexpr Output<Tensor> out{"boxes"};
  static constexpr auto ports =
      heddle::ports(x, logits, first, first_bias, second, second_bias, third, third_bias, out);
  static void execute(Context& ctx);
};

// corners (1, Q, 4 N): logits of N distances of each edge, what three matrices make of x + before
// plus those of the layer before; chances (4 Q, N): their softmax; boxes: `begun`, whose edges move
// by the mean distance. Without a table of distances it is D-FINE's: 0 in the middle, and outwards
// powers whose exponents grow evenly, up to half the scale, and the whole one at both ends.
struct RtdetrBoxes {
  static constexpr Info info{"rtdetr.boxes",     1,  "Boxes of distances",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> before{"before", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> corners_before{"corners_before", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> begun{"begun"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight third{"third.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight third_bias{"third.bias"};
  static constexpr Weight table{"table", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight scale{"scale", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> corners{"corners"};
  static constexpr Output<Tensor> chances{"chances"};
  static constexpr Output<Tensor> boxes{"boxes"};
  static constexpr auto ports =
      heddle::ports(x, before, corners_before, begun, first, first_bias, second, second_bias, third,
                    third_bias, table, scale, corners, chances, boxes);
  static void execute(Context& ctx);
};

// x (1, Q, C), chances -> logits (1, Q, K) f32 of classes, plus what two matrices make of the four
// best chances of each edge and their mean.
struct RtdetrScores {
  static constexpr Info info{"rtdetr.scores",    1,  "Kinds of boxes",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> chances{"chances"};
  static constexpr Weight score{"score.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight score_bias{"score.bias"};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Output<Tensor> out{"logits"};
  static constexpr auto ports =
      heddle::ports(x, chances, score, score_bias, first, first_bias, second, second_bias, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
