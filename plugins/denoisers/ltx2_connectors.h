// plugins/denoisers/ltx2_connectors.h - what LTX 2 makes of a text's projected states before its
// layers look at them: for video and for sound a small transformer of its own, in which learned
// registers stand behind the text, where it is shorter than they reach. Source of the architecture:
// LTX2ConnectorTransformer1d of diffusers, by the publishers of the model. Shapes: B batch, S
// tokens of text, P width of the context, T tokens with the registers, D width of a connector, R
// registers, H heads of d, M width of the MLP. Hidden states are f32 between blocks; only operands
// of matrix products are in the compute type. Blocks are pure and have no instance; any thread.
#pragma once

#include <heddle/model.hpp>

#include <optional>
#include <string>

namespace heddle::denoisers {

// context (B, S, P) -> hidden (B, T, D) f32: the tokens, behind them registers p % R for places p
// up to T, the least multiple of R that is neither below S nor below `least`. Where P is more than
// D, columns from `begin` on are read.
struct Ltx2Registers {
  static constexpr Info info{"ltx2.registers", 1,  "LTX 2 registers of a text",
                             "blocks/ltx2",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> context{"context"};
  static constexpr Input<std::int64_t> begin{"begin", Widget{.number = 0}};
  static constexpr Input<std::int64_t> least{"least", Widget{.number = 1024}};
  static constexpr Weight registers{"registers", HEDDLE_USE_TABLE};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(context, begin, least, registers, out);
  static void execute(Context& ctx);
};

// The shape of hidden (B, T, D) -> cos, sin (T, D / 2) f32: place p turns pair i of n = D / 2 by
// (2 p / `length` - 1) pi / 2 theta^(i / (n - 1)).
struct Ltx2TextRope {
  static constexpr Info info{"ltx2.text_rope", 1,  "LTX 2 rotary table of a text",
                             "blocks/ltx2",    "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden", HEDDLE_PORT_SHAPE};
  static constexpr Input<std::int64_t> length{"length", Widget{.number = 4096}};
  static constexpr Input<double> theta{"theta", Widget{.number = 10000}};
  static constexpr Output<Tensor> cos{"cos"};
  static constexpr Output<Tensor> sin{"sin"};
  static constexpr auto ports = heddle::ports(hidden, length, theta, cos, sin);
  static void execute(Context& ctx);
};

// hidden (B, T, D) -> the same: attention of all tokens to all, and an MLP. Queries and keys are
// normalised over all heads together. With `neighbours` the rotated pairs are (2i, 2i + 1) over all
// heads, else (i, i + d / 2) of each head. With a gate each head counts 2 sigmoid(gate).
struct Ltx2TextLayer {
  static constexpr Info info{"ltx2.text_layer", 2,  "LTX 2 layer of a text",
                             "blocks/ltx2",     "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<Tensor> cos{"cos"};
  static constexpr Input<Tensor> sin{"sin"};
  static constexpr Input<std::int64_t> heads{"heads", Widget{.number = 30}};
  static constexpr Input<bool> neighbours{"neighbours", Widget{}};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Weight qk{"qk.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight qk_bias{"qk.bias"};
  static constexpr Weight v{"v.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight v_bias{"v.bias"};
  static constexpr Weight q_norm{"q_norm.weight"};
  static constexpr Weight k_norm{"k_norm.weight"};
  static constexpr Weight gate{"gate.weight", HEDDLE_USE_LINEAR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight gate_bias{"gate.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight proj{"proj.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight proj_bias{"proj.bias"};
  static constexpr Weight up{"mlp.up.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight up_bias{"mlp.up.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Weight down{"mlp.down.weight", HEDDLE_USE_LINEAR};
  static constexpr Weight down_bias{"mlp.down.bias", HEDDLE_USE_VECTOR, HEDDLE_PORT_OPTIONAL};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports =
      heddle::ports(hidden, cos, sin, heads, neighbours, eps, qk, qk_bias, v, v_bias, q_norm,
                    k_norm, gate, gate_bias, proj, proj_bias, up, up_bias, down, down_bias, out);
  static void execute(Context& ctx);
};

// hidden (B, T, D) -> the same, under a norm without weights.
struct Ltx2TextFinish {
  static constexpr Info info{"ltx2.text_finish", 1,  "LTX 2 final norm of a text",
                             "blocks/ltx2",      "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Input<double> eps{"eps", Widget{.number = 1e-6}};
  static constexpr Output<Tensor> out{"hidden"};
  static constexpr auto ports = heddle::ports(hidden, eps, out);
  static void execute(Context& ctx);
};

// Where one connector is in a file: by the original names, which ComfyUI's files have, behind
// "model.diffusion_model." or alone, or by diffusers'.
class Ltx2ConnectorNames {
 public:
  // kind: "video" or "audio". Nothing when the file has no such connector.
  static std::optional<Ltx2ConnectorNames> find(const Checkpoint& file, const std::string& kind);
  // A tensor by its original name: "transformer_1d_blocks.0.attn1.to_q.weight".
  std::string one(const std::string& original) const;
  int layers() const;

 private:
  Ltx2ConnectorNames(const Checkpoint& file, bool diffusers, std::string prefix)
      : file_(file), diffusers_(diffusers), prefix_(std::move(prefix)) {}

  Checkpoint file_;
  bool diffusers_;
  std::string prefix_;
};

struct Ltx2ConnectorOptions {
  std::int64_t heads[2] = {0, 0};  // of video and sound; 0: as many as gates, else of 128 elements
  std::int64_t rope_length = 4096, least_length = 1024;  // tokens
  double theta = 10000;
  bool neighbours = false;
};
// What a model's config says of them, by diffusers' names ("rope_type",
// "connector_rope_base_seq_len", "rope_theta", "video_connector_num_attention_heads") and the
// original ones
// ("connector_num_attention_heads", "audio_connector_num_attention_heads"); "least_length".
Ltx2ConnectorOptions read_ltx2_connector_options(const Value& config);

struct Ltx2Contexts {
  Source video, audio;  // (B, T, D) f32 each
};
// Adds both connectors of a file to a graph, behind context (B, S, P): both read all of it, or
// where P is the sum of their widths, each its own columns. Throws where the file has not both.
Ltx2Contexts add_ltx2_connectors(const Checkpoint& file, const Ltx2ConnectorOptions& options,
                                 const Source& context, Blocks& graph);

// Both by themselves: input context (B, S, P), outputs video and audio (B, T, D) f32. The config is
// that of read_ltx2_connector_options().
struct Ltx2Connectors {
  static constexpr Family family{"ltx2_connectors", "text_connector", 1,
                                 "LTX 2: the connectors between its text encoder and its layers"};
  static int match(const Checkpoint& file, const Value& config);
  static void build(const Checkpoint& file, const Value& config, Blocks& graph);
};

}  // namespace heddle::denoisers
