// plugins/detection/attention_blocks.h - the two halves of a transformer's layer, with the norm
// before what they do or behind it, and small heads of three matrices. Of SAM 3's detector, its
// encoder of prompts and its mask decoder. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::detection {

// x (B, S, C), places (S of x), memory (B, M, C), memory_places, bias (1, H, S, M) -> x.
// With the norm before: x + attention(norm(x) + places, memory + memory_places, memory); behind:
// norm(x + the same of x itself). Without memory keys are the queries, and values what these are
// made of without places. `keeps` false: without x before the sum.
struct Attend {
  static constexpr Info info{"detection.attend", 1,  "Attention of a detector",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> places{"places", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> memory{"memory", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> memory_places{"memory_places", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> bias{"bias", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 8}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Input<bool> norm_first{"norm_first", Widget{.number = 1}};
  static constexpr Input<bool> keeps{"keeps", Widget{.number = 1}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_bias{"q.bias"};
  static constexpr Weight k{"k.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight k_bias{"k.bias"};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports =
      heddle::ports(x, places, memory, memory_places, bias, heads, eps, norm_first, keeps, norm,
                    norm_bias, q, q_bias, k, k_bias, v, v_bias, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// x (B, S, C) -> x + two matrices with a ReLU or GELU between of norm(x), or norm(x + these of x).
struct FeedForward {
  static constexpr Info info{"detection.feed_forward", 1,  "Feed forward of a detector",
                             "blocks/detection",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Input<bool> norm_first{"norm_first", Widget{.number = 1}};
  static constexpr Input<bool> gelu{"gelu"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight up{"up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"up.bias"};
  static constexpr Weight down{"down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"down.bias"};
  static constexpr Output<Tensor> out{"x"};
  static constexpr auto ports =
      heddle::ports(x, eps, norm_first, gelu, norm, norm_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// Tokens [begin, end) of x (B, S, C), end 0 being S, or of each `every` of these number `pick`,
// normalised where there is a norm, through three matrices with ReLUs between, plus base (B, T, N)
// -> (B, T, N) f32, T being how many they are.
struct TokenHead {
  static constexpr Info info{"detection.token_head", 1,  "Head of a detector's tokens",
                             "blocks/detection",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> base{"base", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<std::int64_t> begin{"begin"};
  static constexpr Input<std::int64_t> end{"end"};
  static constexpr Input<std::int64_t> every{"every", Widget{.number = 1}};
  static constexpr Input<std::int64_t> pick{"pick"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight norm_bias{"norm.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight third{"third.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight third_bias{"third.bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports =
      heddle::ports(x, base, begin, end, every, pick, eps, norm, norm_bias, first, first_bias,
                    second, second_bias, third, third_bias, out);
  static void execute(Context& ctx);
};

// codes (1, Q, C), pixels (1, H, W, C) -> masks (1, Q, H, W) f32: their products.
struct MaskProduct {
  static constexpr Info info{"detection.masks",  1,  "Masks of codes",
                             "blocks/detection", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> codes{"codes"};
  static constexpr Input<Tensor> pixels{"pixels"};
  static constexpr Output<Tensor> out{"masks"};
  static constexpr auto ports = heddle::ports(codes, pixels, out);
  static void execute(Context& ctx);
};

}  // namespace heddle::detection
