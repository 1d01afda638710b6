// plugins/denoisers/wan_sound_blocks.h - the block types that Wan 2.2 S2V has besides Wan's: what
// is heard of a sound, which some layers look at, each frame's tokens at that of the frame; and
// behind the video's tokens those of a reference picture and of the frames before the video, which
// are clean. Source of the architecture: the publishers' WanModel_S2V, as ComfyUI runs it. S states
// of an encoder of sound for each moment, K numbers of a state, E moments, M tokens of a sound in a
// frame, R tokens of the picture, P of earlier frames; other letters as in wan_blocks.h. Blocks are
// pure and have no instance; any thread.
#pragma once

#include "wan_blocks.h"

namespace heddle::denoisers {

// Frames of the latent before the video that are read: the last one as it is, two as one of half
// the sides, sixteen as four of a quarter of the sides.
inline constexpr std::int64_t kNearFrames = 1, kMiddleFrames = 2, kFarFrames = 16;

// heard (1|B, S, K, E), four moments a frame -> tokens (1|B, F M, D) f32, and whole (1|B, F, D)
// f32, what all of a frame's sound is like; of 0 tokens where nothing is heard. The sum of the
// states by their shares is filtered over time, in `parts`, which with one token more are M, and
// once whole. Throws where the moments are of fewer frames than the latent x has.
struct WanSoundIn {
  static constexpr Info info{"wan.sound_in", 1, "Wan sound", "blocks/wan", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> heard{"heard", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> parts{"parts", Widget{.number = 4}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight shares{"shares"};
  static constexpr Weight first[3] = {Weight{"first.0.weight", HEDDLE_USE_LINEAR},
                                      Weight{"first.1.weight", HEDDLE_USE_LINEAR},
                                      Weight{"first.2.weight", HEDDLE_USE_LINEAR}};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight whole_first[3] = {Weight{"whole_first.0.weight", HEDDLE_USE_LINEAR},
                                            Weight{"whole_first.1.weight", HEDDLE_USE_LINEAR},
                                            Weight{"whole_first.2.weight", HEDDLE_USE_LINEAR}};
  static constexpr Weight whole_first_bias{"whole_first.bias"};
  static constexpr Weight second[3] = {Weight{"second.0.weight", HEDDLE_USE_LINEAR},
                                       Weight{"second.1.weight", HEDDLE_USE_LINEAR},
                                       Weight{"second.2.weight", HEDDLE_USE_LINEAR}};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight third[3] = {Weight{"third.0.weight", HEDDLE_USE_LINEAR},
                                      Weight{"third.1.weight", HEDDLE_USE_LINEAR},
                                      Weight{"third.2.weight", HEDDLE_USE_LINEAR}};
  static constexpr Weight third_bias{"third.bias"};
  static constexpr Weight last{"whole_out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"whole_out.bias"};
  static constexpr Weight more{"more"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr Output<Tensor> whole{"whole"};
  static constexpr auto ports = heddle::ports(
      heard, x, parts, eps, shares, first[0], first[1], first[2], first_bias, whole_first[0],
      whole_first[1], whole_first[2], whole_first_bias, second[0], second[1], second[2],
      second_bias, third[0], third[1], third[2], third_bias, last, last_bias, more, out, whole);
  static void execute(Context& ctx);
};

// whole (1|B, F, D) -> mod (1|B, F, 2 D) f32: shift and scale of each frame's tokens before they
// look at the sound.
struct WanSoundShift {
  static constexpr Info info{"wan.sound_shift", 1,  "Wan modulation by sound",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> whole{"whole"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"mod"};
  static constexpr auto ports = heddle::ports(whole, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L + R + P, D) plus what the video's tokens see of the sound in their frame, kv (B, F
// M, 2 D) of WanKeys and mod of WanSoundShift; where kv has no tokens, hidden as it is. x is the
// latent.
struct WanSoundAdd {
  static constexpr Info info{"wan.sound_add", 1,  "Wan look at sound",
                             "blocks/wan",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr Input<Tensor> kv{"kv"};
  static constexpr Input<Tensor> mod{"mod"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 40}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<double> norm_eps{"norm_eps", Widget{.number = 1e-5}};
  static constexpr Weight q{"q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight q_bias{"q.bias"};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Output<Tensor> out{"hidden", HEDDLE_PORT_SEQUENCE};
  static constexpr auto ports = heddle::ports(hidden, kv, mod, x, heads, eps, norm_eps, q, q_bias,
                                              q_norm, proj, proj_bias, out);
  static void execute(Context& ctx);
};

// latent (1|B, C, F', H, W) -> tokens (1|B, N, D) f32, with what their kind is told by, if that is
// given; without it 0 tokens.
struct WanSoundTokens {
  static constexpr Info info{"wan.sound_tokens", 1,  "Wan tokens of a latent",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> latent{"latent", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Weight kind{"kind", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(latent, weight, bias, kind, out);
  static void execute(Context& ctx);
};

// motion (1|B, C, F', H, W), the frames of the latent before the video -> tokens (1|B, P, D) f32,
// of its last 19 frames, zeros where there are fewer; without it 0 tokens. A filter over several
// frames is one for each of them. Throws where the frames are smaller than a filter.
struct WanSoundMotion {
  static constexpr Info info{"wan.sound_motion", 1,  "Wan earlier frames",
                             "blocks/wan",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> motion{"motion", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight near{"near.weight", HEDDLE_USE_CONV2D};
  static constexpr Weight near_bias{"near.bias"};
  static constexpr Weight middle[2] = {Weight{"middle.0.weight", HEDDLE_USE_CONV2D},
                                       Weight{"middle.1.weight", HEDDLE_USE_CONV2D}};
  static constexpr Weight middle_bias{"middle.bias"};
  static constexpr Weight far[4] = {
      Weight{"far.0.weight", HEDDLE_USE_CONV2D}, Weight{"far.1.weight", HEDDLE_USE_CONV2D},
      Weight{"far.2.weight", HEDDLE_USE_CONV2D}, Weight{"far.3.weight", HEDDLE_USE_CONV2D}};
  static constexpr Weight far_bias{"far.bias"};
  static constexpr Weight kind{"kind"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports =
      heddle::ports(motion, near, near_bias, middle[0], middle[1], middle_bias, far[0], far[1],
                    far[2], far[3], far_bias, kind, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), with what their kind is told by and the tokens of a video that is followed
// (1|B, L or 0, D), then those of the picture, shown (1|B, R, D), and of earlier frames, before
// (1|B, P, D) -> hidden (B, L + R + P, D) f32. Throws where the followed video has other tokens.
struct WanSoundJoin {
  static constexpr Info info{"wan.sound_join", 1,  "Wan tokens behind each other",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> followed{"followed"};
  static constexpr Input<Tensor> shown{"shown"};
  static constexpr Input<Tensor> before{"before"};
  static constexpr Weight kind{"kind"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, followed, shown, before, kind, out);
  static void execute(Context& ctx);
};

// The rotary table of the video's tokens at (frame, row, column), the picture's at frame 30 or nine
// behind the video's last, and those of earlier frames at -1, -3 and -19 to -16, rows and columns
// spread over those of a whole frame. cos, sin: (L + R + P, d/2) f32. reference, motion: what those
// tokens are made of.
struct WanSoundRope {
  static constexpr Info info{"wan.sound_rope", 1,  "Wan rotary table with a picture",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE, "the latent (B, C, F, H, W)"};
  static constexpr Input<Tensor> reference{"reference", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<Tensor> motion{"motion", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> axis_0{"axis_0", Widget{.number = 44}};
  static constexpr Input<std::int64_t> axis_1{"axis_1", Widget{.number = 42}};
  static constexpr Input<std::int64_t> axis_2{"axis_2", Widget{.number = 42}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports =
      heddle::ports(x, reference, motion, axis_0, axis_1, axis_2, theta, cos, sin);
  static void execute(Context& ctx);
};

// WanLayer over the tokens of WanSoundJoin: mod (1, 2, 6 D), of the video's and of the clean ones
// behind them. x is the latent.
struct WanSoundLayer {
  using B = WanLayer;
  static constexpr Info info{"wan.sound_layer", 1,  "Wan layer with clean tokens",
                             "blocks/wan",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr auto ports = heddle::ports(
      B::hidden, B::mod, B::text_kv, B::vision_kv, B::cos, B::sin, x, B::heads, B::eps, B::table,
      B::qk, B::qk_bias, B::v, B::v_bias, B::q_norm, B::k_norm, B::proj, B::proj_bias, B::norm,
      B::norm_bias, B::text_q, B::text_q_bias, B::text_q_norm, B::text_proj, B::text_proj_bias,
      B::up, B::up_bias, B::down, B::down_bias, B::out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
