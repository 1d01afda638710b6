// plugins/denoisers/wan_dancer_blocks.h - the block types that WanDancer has besides Wan's: a small
// transformer over what was measured of a music, which is spread over the video, eight moments for
// each frame of the latent, and added behind some layers; and filters and a head of their own for
// frames that are further apart than those of a film. Source of the architecture: the publishers'
// model, as ComfyUI runs it (comfy/ldm/wan/model_wandancer.py). S measurements of N numbers, E
// width of the small transformer, M = 8 F moments of the latent's F frames; other letters as in
// wan_blocks.h. Blocks are pure and have no instance; any thread.
#pragma once

#include "wan_blocks.h"

namespace heddle::denoisers {

// Moments of the music in a frame of the latent, heads of the small transformer.
inline constexpr std::int64_t kMusicMoments = 8, kMusicHeads = 4;

// music (1|B, S, N) -> hidden (1|B, S, E) f32; without it (1, 0, E).
struct WanMusicIn {
  static constexpr Info info{"wan.music_in", 1, "Wan music", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> music{"music", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(music, weight, bias, out);
  static void execute(Context& ctx);
};

// A layer over all measurements: hidden (1|B, S, E) -> the same f32. Queries and keys are turned by
// their number.
struct WanMusicLayer {
  static constexpr Info info{"wan.music_layer", 1,  "Wan layer over music",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight last_norm{"last_norm.weight"};
  static constexpr Weight last_norm_bias{"last_norm.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, eps, theta, norm, norm_bias, qkv, qkv_bias, proj, proj_bias, last_norm,
                    last_norm_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (1|B, S, E) -> moments (1|B, M, width) f32, S and E stretched linearly to M and width, as
// PyTorch's interpolate() does without aligned corners; of 0 measurements 0 moments. REQUIRES:
// width is a multiple of E.
struct WanMusicSpread {
  static constexpr Info info{"wan.music_spread", 1,  "Wan moments of music",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> width{"width", Widget{.number = 5120}};
  static constexpr Output<Tensor> out{"moments"};
  static constexpr auto ports = heddle::ports(hidden, x, width, out);
  static void execute(Context& ctx);
};

// What a layer's tokens see of moments (1|B, M, D), `strength` (1) times: (1|B, M, D) f32. Each
// token looks at one moment alone, which has all of its attention, so that neither queries nor keys
// count. Without a strength it is 1.
struct WanMusicTold {
  static constexpr Info info{"wan.music_told", 1,  "Wan look at music",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> moments{"moments"};
  static constexpr Input<Tensor> strength{"strength", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"told"};
  static constexpr auto ports = heddle::ports(moments, strength, v, v_bias, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D) plus told (1|B, M, D), of which each moment is for an eighth of a frame's
// tokens; of 0 moments hidden as it is. x is the latent. Throws where a frame's tokens have no
// eighths.
struct WanMusicAdd {
  static constexpr Info info{"wan.music_add", 1,  "Wan tokens and music",
                             "blocks/wan",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> told{"told"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(hidden, told, x, out);
  static void execute(Context& ctx);
};

// What was seen of two pictures: first (1|B, V, D), then second (1|B, V', D), either of 0 tokens.
struct WanVisionJoin {
  static constexpr Info info{"wan.vision_join", 1,  "Wan two pictures",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> first{"first"};
  static constexpr Input<Tensor> second{"second"};
  static constexpr Output<Tensor> out{"img"};
  static constexpr auto ports = heddle::ports(first, second, out);
  static void execute(Context& ctx);
};

// The three below: frame_places (F), of which in the first and the last it counts alone that it is
// given. Then the frames lie apart, at these numbers of the frames of a film, and the weights named
// apart are read.

// WanLatentIn.
struct WanDancerLatentIn {
  using B = WanLatentIn;
  static constexpr Info info{"wan.dancer_latent_in", 1,  "Wan latent of near or far frames",
                             "blocks/wan",           "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> frame_places{"frame_places",
                                              HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Weight apart{"apart.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight apart_bias{"apart.bias"};
  static constexpr auto ports = heddle::ports(B::x, B::concat, B::patch, frame_places, B::weight,
                                              B::bias, apart, apart_bias, B::out);
  static void execute(Context& ctx);
};

// WanRope. Throws where the places are of other frames.
struct WanDancerRope {
  using B = WanRope;
  static constexpr Info info{"wan.dancer_rope", 1,  "Wan rotary table of near or far frames",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> frame_places{"frame_places", HEDDLE_PORT_OPTIONAL};
  static constexpr auto ports =
      heddle::ports(B::x, frame_places, B::axis_0, B::axis_1, B::axis_2, B::theta, B::cos, B::sin);
  static void execute(Context& ctx);
};

// WanFinal, with a mod for frames apart.
struct WanDancerFinal {
  using B = WanFinal;
  static constexpr Info info{"wan.dancer_final", 1,  "Wan output of near or far frames",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> apart_mod{"apart_mod"};
  static constexpr Input<Tensor> frame_places{"frame_places",
                                              HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Weight apart{"apart.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight apart_bias{"apart.bias"};
  static constexpr auto ports =
      heddle::ports(B::hidden, B::mod, apart_mod, B::x, frame_places, B::eps, B::weight, B::bias,
                    apart, apart_bias, B::out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
