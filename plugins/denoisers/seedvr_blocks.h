// plugins/denoisers/seedvr_blocks.h - the block types of SeedVR2 (NaDiT), written down as programs
// over the op catalogue. Source of the architecture: the publisher's, as ComfyUI runs it. Shapes: B
// batch, F frames, L tokens of the video, T of the text, D hidden width, N steps. Streams, and what
// the first and the last layer read and write, are f32. Blocks are pure and have no instance; any
// thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::denoisers {

// timestep (N) in [0, 1000] -> vector (N, 6, D) f32: shift, scale and gate of the attention, then
// those of the MLP, to which each layer adds its own.
struct SeedvrVector {
  static constexpr Info info{"seedvr.vector", 1,  "SeedVR2 timestep",
                             "blocks/seedvr", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> timestep{"timestep"};
  static constexpr Weight in{"in.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight in_bias{"in.bias"};
  static constexpr Weight middle{"middle.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight middle_bias{"middle.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Output<Tensor> out{"vector"};
  static constexpr auto ports =
      heddle::ports(timestep, in, in_bias, middle, middle_bias, last, last_bias, out);
  static void execute(Context& ctx);
};

// vector (N, 6, D), and what a layer adds to its first R rows -> mod (N, 1, R D) f32.
struct SeedvrModulation {
  static constexpr Info info{"seedvr.modulation", 1,  "SeedVR2 modulation",
                             "blocks/seedvr",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vector{"vector"};
  static constexpr Weight added{"added"};  // (R D)
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(vector, added, out);
  static void execute(Context& ctx);
};

// x (B, C, F, H, W), the point, with concat (1|B, C', F, H, W), what is made sharper: squares of 2
// x 2 pixels -> tokens (B, L, D) f32.
struct SeedvrVideoIn {
  static constexpr Info info{"seedvr.video_in", 1,  "SeedVR2 video input",
                             "blocks/seedvr",   "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Input<Tensor> concat{"concat"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(x, concat, weight, bias, out);
  static void execute(Context& ctx);
};

// context (1|B, T, W) -> (B, T, D) f32.
struct SeedvrTextIn {
  static constexpr Info info{"seedvr.text_in", 1,  "SeedVR2 text input",
                             "blocks/seedvr",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"txt"};
  static constexpr auto ports = heddle::ports(context, x, weight, bias, out);
  static void execute(Context& ctx);
};

// The rotary table of the video's tokens, by their places in their windows, and of the text's
// behind them. cos, sin: (L + T, head / 2) f32. `of_language`: places count from 0, frames behind
// the text, whose tokens are at (i, i, i), waves are those of language models. Else places of a
// window go from -1 to 1 along each axis, waves are pi to 128 pi, and a text is not turned. A third
// of a head each is turned by frames, rows and columns, as far as whole pairs go; of the latter
// kind of half a head. It reads shapes only.
struct SeedvrRope {
  static constexpr Info info{"seedvr.rope",   1,  "SeedVR2 rotary table",
                             "blocks/seedvr", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> context{"context", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> head{"head", Widget{.number = 128}};
  static constexpr Input<std::int64_t> pairs{"pairs", Widget{.number = 21}, "of an axis"};
  static constexpr Input<bool> of_language{"of_language", Widget{}};
  static constexpr Input<bool> shifted{"shifted", Widget{}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(x, context, head, pairs, of_language, shifted, cos, sin);
  static void execute(Context& ctx);
};

// A layer: vid (B, L, D), txt (B, T, D) -> the same. The tokens of each window look at each other
// and at the text, whose tokens get the mean of what they saw in all windows. Without weights of
// its own the text takes the video's. Without txt_mod (the last layer of models that share them)
// the text is only shown, and comes out as it went in.
struct SeedvrLayer {
  static constexpr Info info{"seedvr.layer",  1,  "SeedVR2 layer",
                             "blocks/seedvr", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vid{"vid"};
  static constexpr Input<Tensor> txt{"txt"};
  static constexpr Input<Tensor> vid_mod{"vid_mod"};
  static constexpr Input<Tensor> txt_mod{"txt_mod", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 20}};
  static constexpr Input<bool> shifted{"shifted", Widget{}};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight norm_q{"norm_q.weight"};
  static constexpr Weight norm_k{"norm_k.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias", HEDDLE_USE_BIAS};
  static constexpr Weight gate{"mlp.gate.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_qkv{"txt.qkv.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_norm_q{"txt.norm_q.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_norm_k{"txt.norm_k.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_proj{"txt.proj.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_proj_bias{"txt.proj.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_gate{"txt.mlp.gate.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_up{"txt.mlp.up.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_up_bias{"txt.mlp.up.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_down{"txt.mlp.down.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight txt_down_bias{"txt.mlp.down.bias", HEDDLE_USE_BIAS, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> vid_out{"vid"};
  static constexpr Output<Tensor> txt_out{"txt"};
  static constexpr auto ports = heddle::ports(
      vid, txt, vid_mod, txt_mod, cos, sin, x, heads, shifted, qkv, norm_q, norm_k, proj, proj_bias,
      gate, up, up_bias, down, down_bias, txt_qkv, txt_norm_q, txt_norm_k, txt_proj, txt_proj_bias,
      txt_gate, txt_up, txt_up_bias, txt_down, txt_down_bias, vid_out, txt_out);
  static void execute(Context& ctx);
};

// vid (B, L, D), with a norm that mod (1, 1, 2 D) modulates where there is one -> out (B, C, F, H,
// W) in x's element type.
struct SeedvrVideoOut {
  static constexpr Info info{"seedvr.video_out", 1,  "SeedVR2 video output",
                             "blocks/seedvr",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> vid{"vid"};
  static constexpr Input<Tensor> mod{"mod", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> x{"x"};
  static constexpr Weight norm{"norm.weight", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(vid, mod, x, norm, weight, bias, out);
  static void execute(Context& ctx);
};

// The texts that the model's file brings: (T, W) -> (1, T, W) f32.
struct SeedvrTexts {
  static constexpr Info info{"seedvr.texts",  1,  "SeedVR2 texts",
                             "blocks/seedvr", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Weight positive{"positive"};
  static constexpr Weight negative{"negative"};
  static constexpr Output<Tensor> positive_out{"positive"};
  static constexpr Output<Tensor> negative_out{"negative"};
  static constexpr auto ports = heddle::ports(x, positive, negative, positive_out, negative_out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
