// plugins/denoisers/wan_humo_blocks.h - the block types that HuMo has besides Wan's: a reference
// picture as a frame behind the video's, and in each layer, behind the text, tokens that look at
// what is heard in their frame. Source of the architecture: the publishers' model, as ComfyUI runs
// it. M tokens of a sound in a frame, K their width, W windows of S states of N numbers that are
// heard in a frame, R frames of the reference, 0 or 1; other letters as in wan_blocks.h. Blocks are
// pure and have no instance; any thread.
#pragma once

#include "wan_blocks.h"

namespace heddle::denoisers {

// Of each frame: moments, and states of the encoder for each.
inline constexpr std::int64_t kHumoWindow = 8, kHumoStates = 5;

// heard (1|B, F, W, S, N) -> tokens (1|B, (F + R) M, K) f32, those of the reference of silence;
// without it 0 tokens. reference: its latent, of which the shape counts.
struct WanHumoIn {
  static constexpr Info info{"wan.humo_in", 1,  "Wan sound of each frame",
                             "blocks/wan",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> heard{"heard", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> reference{"reference", HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_SHAPE};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight first{"first.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight first_bias{"first.bias"};
  static constexpr Weight second{"second.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight second_bias{"second.bias"};
  static constexpr Weight last{"out.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight last_bias{"out.bias"};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(heard, reference, eps, first, first_bias, second,
                                              second_bias, last, last_bias, norm, norm_bias, out);
  static void execute(Context& ctx);
};

// latent (1|B, C, 1, H, W) of the reference -> tokens (1|B, N, D) f32, of the filter of the
// video's; without it 0 tokens. Of a model that reads more than C channels it is the given latent
// behind a point of zeros and a mask of ones.
struct WanHumoReference {
  static constexpr Info info{"wan.humo_reference", 1,  "Wan reference behind the video",
                             "blocks/wan",         "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> latent{"latent", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight weight{"weight", HEDDLE_USE_CONV2D};
  static constexpr Weight bias{"bias"};
  static constexpr Output<Tensor> out{"tokens"};
  static constexpr auto ports = heddle::ports(latent, weight, bias, out);
  static void execute(Context& ctx);
};

// hidden (B, L, D), then the reference's tokens, shown (1|B, N, D) -> (B, L + N, D) f32.
struct WanHumoJoin {
  static constexpr Info info{"wan.humo_join", 1,  "Wan tokens and a reference's",
                             "blocks/wan",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> shown{"shown"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, shown, out);
  static void execute(Context& ctx);
};

// WanLayer, whose tokens also look at the sound of their frame: sound_kv (B, (F + R) M, 2 D), of
// WanKeys, M being `parts`; of 0 tokens it is WanLayer. x is the latent. Throws where the sound is
// of other frames than the tokens.
struct WanHumoLayer {
  using B = WanLayer;
  static constexpr Info info{"wan.humo_layer", 1,  "Wan layer that hears a sound",
                             "blocks/wan",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> sound_kv{"sound_kv"};
  static constexpr Input<Tensor> x{"x", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> parts{"parts", Widget{.number = 16}};
  static constexpr Weight sound_norm{"sound_norm.weight"};
  static constexpr Weight sound_norm_bias{"sound_norm.bias"};
  static constexpr Weight sound_q{"sound_q.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight sound_q_bias{"sound_q.bias"};
  static constexpr Weight sound_q_norm{"sound_q_norm.weight"};
  static constexpr Weight sound_proj{"sound_proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight sound_proj_bias{"sound_proj.bias"};
  static constexpr auto ports = heddle::ports(
      B::hidden, B::mod, B::text_kv, B::vision_kv, B::cos, B::sin, sound_kv, x, B::heads, B::eps,
      parts, B::table, B::qk, B::qk_bias, B::v, B::v_bias, B::q_norm, B::k_norm, B::proj,
      B::proj_bias, B::norm, B::norm_bias, B::text_q, B::text_q_bias, B::text_q_norm, B::text_proj,
      B::text_proj_bias, sound_norm, sound_norm_bias, sound_q, sound_q_bias, sound_q_norm,
      sound_proj, sound_proj_bias, B::up, B::up_bias, B::down, B::down_bias, B::out);
  static void execute(Context& ctx);
};

}  // namespace heddle::denoisers
