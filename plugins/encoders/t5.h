// plugins/encoders/t5.h - the encoder of T5 (v1.1 with gated GELU, v1.0 with ReLU) and UMT5, from
// transformers' names (T5EncoderModel), with whatever prefix a file puts before them, from those of
// llama.cpp's gguf files, or from those of Wan's own file of UMT5.
//
// Input    ids          (B, S) i32   loop-invariant   token ids; padding is seen, as in FLUX. Who
//                                                     masks it leaves it out (windows.h)
// Output   last_hidden  (B, S, D)    after the final norm
//
// Source of the architecture: Raffel et al. 2020 and transformers' T5EncoderModel: RMS norms, no
// biases, attention without scale, position only by the relative bias that the first layer owns and
// all share (in UMT5 every layer owns one). Without a config: 128 as the largest distance, gated
// GELU (tanh) or, with one matrix `wi`, ReLU; the buckets and heads are the shape of the bias
// table. Only operands of matrix products are in the compute type (plugins/blocks/wide.h), and
// last_hidden is f32. Stateless, any thread.
#pragma once

#include <heddle/abi/ops.h>
#include <heddle/model.hpp>

namespace heddle::encoders {

// ids (B, S) -> hidden (B, S, D).
struct T5Embed {
  static constexpr Info info{"t5.embed", 1, "T5 embedding", "blocks/t5", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> ids{"ids"};
  static constexpr Weight tokens{"tokens", HEDDLE_USE_TABLE};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(ids, tokens, out);
  static void execute(Context& ctx);
};

// The shape of ids (B, S) -> bias (1, H, S, S).
struct T5Bias {
  static constexpr Info info{"t5.bias",   1,  "T5 relative position bias",
                             "blocks/t5", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> ids{"ids", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> max_distance{"max_distance", Widget{.number = 128}};
  static constexpr Weight table{"table", HEDDLE_USE_TABLE};
  static constexpr Output<Tensor> out{"bias"};
  static constexpr auto ports = heddle::ports(ids, max_distance, table, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> the same. `up` holds both halves of the gated MLP when `gated`, else one
// matrix.
struct T5Layer {
  static constexpr Info info{"t5.layer", 1, "T5 layer", "blocks/t5", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> bias{"bias"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 64}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Input<std::int64_t> activation{"activation",
                                                  Widget{.number = HEDDLE_ACT_GELU_TANH}};
  static constexpr Input<bool> gated{"gated", Widget{.number = 1}};
  static constexpr Weight norm1{"norm1.weight"};
  static constexpr Weight qkv{"qkv.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR,
                            HEDDLE_PORT_OPTIONAL};  // then qkv has none
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight norm2{"norm2.weight"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, bias, heads, eps, activation, gated, norm1,
                                              qkv, v, proj, norm2, up, down, out);
  static void execute(Context& ctx);
};

// hidden (B, S, D) -> the same.
struct T5Finish {
  static constexpr Info info{"t5.finish", 1, "T5 final norm", "blocks/t5", "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight norm{"norm.weight"};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, eps, norm, out);
  static void execute(Context& ctx);
};

struct T5 {
  static constexpr Family family{"t5", "text_encoder", 1, "T5 and UMT5 encoders"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::encoders
