// plugins/encoders/clip.h - CLIP's text encoder, from the names of transformers (CLIPTextModel) or
// OpenCLIP, with whatever prefix a file puts before them (clip_names.h).
//
// Inputs   ids          (B, S) i32  loop-invariant  token ids, S at most as many as positions (77)
//          eos          (B) i32     loop-invariant  where each row's end token is: the state there
//                                                   is the pooled one
//          vectors      (B, S, D)   loop-invariant  optional, with is_word (B, S, 1): what stands
//                                                   for the token where is_word is 0, else zeros
// Outputs  last_hidden  (B, S, D)   last layer, or that which the config's normed_layer tells
//                                   (-1: the last, -2: that before it), after the final norm
//          penultimate  (B, S, D)   the layer before it, without the final norm
//          layer.<i>    (B, S, D)   after i layers, 1 <= i <= depth, without the final norm (for
//                                   CLIP skip)
//          pooled       (B, D)      the last layer's at eos, normed, not projected (what FLUX
//          reads) projected    (B, P)      pooled through text_projection, when the file has it
//
// Source of the architecture: Radford et al. 2021 and transformers' CLIPTextModel: pre-norm layers,
// causal attention. Without a config heads are 64 wide, eps is 1e-5, and the activation is
// quick-GELU in models of less than 23 layers (OpenAI's CLIP-L), GELU in deeper ones (OpenCLIP's H
// and G). Only operands of matrix products are in the compute type (plugins/blocks/wide.h); all
// outputs are f32. Stateless, any thread.
#pragma once

#include <heddle/abi/ops.h>
#include <heddle/model.hpp>

namespace heddle::encoders {

// ids (B, S) -> hidden (B, S, D): token plus position. Where is_word (B, S, 1) is 0, not 1, the
// vector (B, S, D) of that place stands for the token; both or none are given.
struct ClipEmbed {
  static constexpr Info info{"clip.embed",  1,  "CLIP embedding",
                             "blocks/clip", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> ids{"ids"};
  static constexpr Input<Tensor> vectors{"vectors", HEDDLE_PORT_OPTIONAL};
  static constexpr Input<Tensor> is_word{"is_word", HEDDLE_PORT_OPTIONAL};
  static constexpr Weight tokens{"tokens", HEDDLE_USE_TABLE};
  static constexpr Weight positions{"positions"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(ids, vectors, is_word, tokens, positions, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> the same. `activation` is one of HEDDLE_ACT_.... A token sees those before
// it, or, not `causal`, all.
struct ClipLayer {
  static constexpr Info info{"clip.layer", 1, "CLIP layer", "blocks/clip", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 12}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Input<std::int64_t> activation{"activation",
                                                  Widget{.number = HEDDLE_ACT_QUICK_GELU}};
  static constexpr Input<bool> causal{"causal", Widget{.number = 1}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight norm1_bias{"norm1.bias"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qkv_bias{"qkv.bias"};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight norm2_bias{"norm2.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias"};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, heads, eps, activation, causal, norm1, norm1_bias, qkv, qkv_bias, proj,
                    proj_bias, norm2, norm2_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D), eos (B) -> last (B, S, D), pooled (B, D).
struct ClipFinish {
  static constexpr Info info{"clip.finish", 1,  "CLIP final norm and pooling",
                             "blocks/clip", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> eos{"eos"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-5}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Weight norm_bias{"norm.bias"};
  static constexpr Output<Tensor> last{"last"};
  static constexpr Output<Tensor> pooled{"pooled"};
  static constexpr auto ports = heddle::ports(hidden, eos, eps, norm, norm_bias, last, pooled);
  static void execute(Context& ctx);
};

// pooled (B, D) -> (B, P). The slot of one of the two forms of the matrix is filled.
struct ClipProject {
  static constexpr Info info{"clip.project", 1,  "CLIP text projection",
                             "blocks/clip",  "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> pooled{"pooled"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight columns{"columns", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};  // (D, P)
  static constexpr Output<Tensor> out{"projected"};
  static constexpr auto ports = heddle::ports(pooled, weight, columns, out);
  static void execute(Context& ctx);
};

struct Clip {
  static constexpr Family family{"clip", "text_encoder", 1, "CLIP text encoder"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
