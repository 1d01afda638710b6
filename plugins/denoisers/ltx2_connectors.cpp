#include "ltx2_connectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <heddle/checked.hpp>
#include <heddle/norm_ops.hpp>

#include "plugins/blocks/heads.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

constexpr double kTextUnbound = std::numeric_limits<double>::infinity();
constexpr const char* kLtx2Kinds[] = {"video", "audio"};
constexpr std::int64_t kLtx2TextHead = 128;

// Queries or keys (B, T, D), normalised and turned: (B, T, H, d).
Tensor ltx2_turned(Context& ctx, const Tensor& x, const Weight& slot) {
  using B = Ltx2TextLayer;
  const std::int64_t count = ctx[B::heads], width = x.size(2);
  const Tensor whole = blocks::split_heads(x, 1), out = ctx.make(whole.shape());
  if (ctx[B::neighbours]) {
    ops::norm_rope_into(ctx, whole, ctx[slot], ctx[B::cos], ctx[B::sin], ctx[B::eps], out);
  } else {
    const auto head = checked_cast<std::int32_t>(width / count, "a head");
    ops::norm_rope_half_into(ctx, whole, ctx[slot], ctx[B::cos], ctx[B::sin],
                             {ctx[B::eps], head, head / 2}, out);
  }
  return out.reshape({x.size(0), x.size(1), count, width / count});
}

Tensor ltx2_attended(Context& ctx, const Tensor& x) {
  using B = Ltx2TextLayer;
  const std::int64_t count = ctx[B::heads], width = ctx[B::v].size(0);
  const Tensor qk = ops::linear(ctx, x, ctx[B::qk], ctx[B::qk_bias]);
  const Tensor q = ltx2_turned(ctx, qk.slice(2, 0, width), B::q_norm),
               k = ltx2_turned(ctx, qk.slice(2, width, 2 * width), B::k_norm),
               v = blocks::split_heads(ops::linear(ctx, x, ctx[B::v], ctx[B::v_bias]), count);
  const Tensor seen =
      ops::attention(ctx, q, k, v, {}, 1 / std::sqrt(double(width) / double(count)));
  if (!ctx[B::gate]) return blocks::join_heads(seen);
  // 2 sigmoid(x) is 1 + tanh(x / 2).
  const Tensor told = blocks::wide_linear(ctx, x, ctx[B::gate], ctx[B::gate_bias]),
               half = ops::scale_clamp(ctx, told, {0.5, 0, -kTextUnbound, kTextUnbound}),
               factor = ops::scale_clamp(ctx, ops::activate(ctx, half, HEDDLE_ACT_TANH),
                                         {1, 1, -kTextUnbound, kTextUnbound});
  return blocks::join_heads(
      ops::mul(ctx, seen, factor.reshape({factor.size(0), factor.size(1), count, 1})));
}

// Builds one connector.
class Ltx2ConnectorBuilder {
 public:
  Ltx2ConnectorBuilder(const Checkpoint& file, const Ltx2ConnectorNames& names,
                       const Ltx2ConnectorOptions& options, std::string path, Blocks& graph)
      : file_(file),
        names_(names),
        o_(options),
        path_(std::move(path)),
        graph_(graph),
        width_(file.size(names.one("learnable_registers"), 1)) {}

  // begin: of its own columns of the context. asked: heads, or 0.
  Source run(const Source& context, std::int64_t begin, std::int64_t asked) {
    heads_ = count_heads(asked);
    Source hidden = add_registers(context, begin);
    Block rope = graph_.add<Ltx2TextRope>(path_ + ".rope");
    rope.link(Ltx2TextRope::hidden, hidden)
        .set(Ltx2TextRope::length, o_.rope_length)
        .set(Ltx2TextRope::theta, o_.theta);
    for (int i = 0; i < names_.layers(); ++i)
      hidden = add_layer(i, hidden, rope[Ltx2TextRope::cos], rope[Ltx2TextRope::sin]);
    Block finish = graph_.add<Ltx2TextFinish>(path_ + ".finish");
    finish.link(Ltx2TextFinish::hidden, hidden);
    return finish[Ltx2TextFinish::out];
  }

 private:
  std::int64_t count_heads(std::int64_t asked) const {
    const std::string gate = names_.one("transformer_1d_blocks.0.attn1.to_gate_logits.weight");
    const std::int64_t heads = asked > 0         ? asked
                               : file_.has(gate) ? file_.size(gate, 0)
                                                 : width_ / kLtx2TextHead;
    if (heads < 1 || width_ % (2 * heads) != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": a text connector of width " + std::to_string(width_) +
                      " does not divide into " + std::to_string(heads) +
                      " heads with pairs. The file is damaged or of another model.");
    return heads;
  }

  Source add_registers(const Source& context, std::int64_t begin) {
    using B = Ltx2Registers;
    const std::string path = path_ + ".registers", name = names_.one("learnable_registers");
    Block block = graph_.add<B>(path);
    block.link(B::context, context).set(B::begin, begin).set(B::least, o_.least_length);
    blocks::Slots(file_, block, path).fill(B::registers, name, {file_.size(name, 0), width_});
    return block[B::out];
  }

  Source add_layer(int i, const Source& hidden, const Source& cos, const Source& sin) {
    using B = Ltx2TextLayer;
    const std::string path = path_ + ".layer." + std::to_string(i),
                      at = "transformer_1d_blocks." + std::to_string(i) + ".";
    const auto name = [&](const char* tensor) { return names_.one(at + tensor); };
    Block block = graph_.add<B>(path);
    block.link(B::hidden, hidden).link(B::cos, cos).link(B::sin, sin);
    block.set(B::heads, heads_).set(B::neighbours, o_.neighbours);
    blocks::Slots slots(file_, block, path);
    const std::int64_t d = width_, mlp = file_.size(name("ff.net.0.proj.weight"), 0);
    slots.fill(B::qk, {{name("attn1.to_q.weight")}, {name("attn1.to_k.weight")}}, {2 * d, d});
    slots.fill(B::qk_bias, {{name("attn1.to_q.bias")}, {name("attn1.to_k.bias")}}, {2 * d});
    // MLPs that add nothing do so in all layers (connector_ff_bias of the publishers' config).
    const bool adds = file_.has(names_.one("transformer_1d_blocks.0.ff.net.0.proj.bias"));
    const auto linear = [&](const Weight& matrix, const Weight& bias, const char* module,
                            std::int64_t out, std::int64_t in) {
      slots.fill(matrix, name(module) + ".weight", {out, in});
      if (adds || module[0] != 'f') slots.fill(bias, name(module) + ".bias", {out});
    };
    linear(B::v, B::v_bias, "attn1.to_v", d, d);
    slots.fill(B::q_norm, name("attn1.q_norm.weight"), {d});
    slots.fill(B::k_norm, name("attn1.k_norm.weight"), {d});
    if (file_.has(name("attn1.to_gate_logits.weight")))
      linear(B::gate, B::gate_bias, "attn1.to_gate_logits", heads_, d);
    linear(B::proj, B::proj_bias, "attn1.to_out.0", d, d);
    linear(B::up, B::up_bias, "ff.net.0.proj", mlp, d);
    linear(B::down, B::down_bias, "ff.net.2", d, mlp);
    return block[B::out];
  }

  const Checkpoint& file_;
  const Ltx2ConnectorNames& names_;
  const Ltx2ConnectorOptions& o_;
  const std::string path_;
  Blocks& graph_;
  const std::int64_t width_;
  std::int64_t heads_ = 0;
};

}  // namespace

void Ltx2Registers::execute(Context& ctx) {
  const Tensor given = ctx[context], table = ctx[registers];
  const std::int64_t batch = given.size(0), count = given.size(1), width = table.size(1),
                     room = table.size(0), from = given.size(2) == width ? 0 : ctx[begin];
  if (from + width > given.size(2))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model reads texts of width " + std::to_string(from + width) + ", got " +
                    std::to_string(given.size(2)) +
                    ". Encode the prompt with LTXAVTextEncoderLoader, with this model's own "
                    "checkpoint as ckpt_name.");
  const std::int64_t total = (std::max(count, std::int64_t(ctx[least])) + room - 1) / room * room;
  const Tensor all = ctx.make({batch, total, width}, HEDDLE_F32);
  ops::copy_into(ctx, given.slice(2, from, from + width), all.slice(1, 0, count));
  for (std::int64_t at = count; at < total;) {
    const std::int64_t first = at % room, end = std::min(total, at + room - first);
    const Tensor rows = table.slice(0, first, first + end - at).reshape({1, end - at, width});
    for (std::int64_t row = 0; row < batch; ++row)
      ops::copy_into(ctx, rows, all.slice(0, row, row + 1).slice(1, at, end));
    at = end;
  }
  ctx[out] = all;
}

void Ltx2TextRope::execute(Context& ctx) {
  const Tensor shape = ctx[hidden];
  const std::int64_t count = shape.size(1), pairs = shape.size(2) / 2;
  const Tensor grid = ctx.make({count, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{count, 1, 1}, {0, 0, 0}}, grid);
  const Tensor parts = ops::scale_clamp(ctx, ops::contiguous(ctx, grid.slice(1, 0, 1)),
                                        {2 / double(ctx[length]), -1, -kTextUnbound, kTextUnbound});
  const Tensor ids =
      ops::scale_clamp(ctx, parts, {std::numbers::pi / 2, 0, -kTextUnbound, kTextUnbound});
  // The table's frequencies are base^(-i / n), here theta^(i / (n - 1)).
  const double base =
      pairs > 1 ? std::pow(ctx[theta], -double(pairs) / double(pairs - 1)) : ctx[theta];
  const auto [c, s] = ops::rope_table(
      ctx, ids, {1, 0, {checked_cast<std::int32_t>(2 * pairs, "width"), 0, 0, 0}, base});
  ctx[cos] = c;
  ctx[sin] = s;
}

void Ltx2TextLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const double epsilon = ctx[eps];
  const Tensor middle =
      blocks::wide_linear(ctx, ltx2_attended(ctx, ops::rms_norm(ctx, x, {}, epsilon)), ctx[proj],
                          ctx[proj_bias], HEDDLE_ACT_NONE, x);
  const Tensor raised = ops::linear(ctx, ops::rms_norm(ctx, middle, {}, epsilon), ctx[up],
                                    ctx[up_bias], HEDDLE_ACT_GELU_TANH);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, middle);
}

void Ltx2TextFinish::execute(Context& ctx) {
  const Tensor x = ctx[hidden], normed = ctx.make(x.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, x, {}, ctx[eps], normed);
  ctx[out] = normed;
}

std::optional<Ltx2ConnectorNames> Ltx2ConnectorNames::find(const Checkpoint& file,
                                                           const std::string& kind) {
  constexpr const char* kMark = "learnable_registers";
  for (const char* before : {"", "model.diffusion_model.", "diffusion_model."})
    if (const std::string prefix = before + kind + "_embeddings_connector.";
        file.has(prefix + kMark))
      return Ltx2ConnectorNames(file, false, prefix);
  if (const std::string prefix = kind + "_connector."; file.has(prefix + kMark))
    return Ltx2ConnectorNames(file, true, prefix);
  return std::nullopt;
}

std::string Ltx2ConnectorNames::one(const std::string& original) const {
  std::string name = original;
  if (diffusers_)
    for (const auto& [from, to] : {std::pair("transformer_1d_blocks", "transformer_blocks"),
                                   std::pair("q_norm", "norm_q"), std::pair("k_norm", "norm_k")})
      if (const std::size_t at = name.find(from); at != name.npos)
        name.replace(at, std::string_view(from).size(), to);
  return prefix_ + name;
}

int Ltx2ConnectorNames::layers() const {
  return blocks::layer_count(
      file_, prefix_ + (diffusers_ ? "transformer_blocks." : "transformer_1d_blocks."));
}

Ltx2ConnectorOptions read_ltx2_connector_options(const Value& config) {
  Ltx2ConnectorOptions o;
  constexpr const char* kOriginal[] = {"connector_num_attention_heads",
                                       "audio_connector_num_attention_heads"};
  for (int i = 0; i < 2; ++i) {
    o.heads[i] = config.get<std::int64_t>(kOriginal[i], 0);
    const std::string name = kLtx2Kinds[i] + std::string("_connector_num_attention_heads");
    o.heads[i] = config.get<std::int64_t>(name.c_str(), o.heads[i]);
  }
  o.rope_length = config.get<std::int64_t>("connector_rope_base_seq_len", o.rope_length);
  o.least_length = config.get<std::int64_t>("least_length", o.least_length);
  o.theta = config.get<double>("rope_theta", o.theta);
  o.neighbours = config.get<std::string>("rope_type", "split") == "interleaved";
  if (o.rope_length < 1 || o.least_length < 1 || !(o.theta > 0))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the config of text connectors says connector_rope_base_seq_len " +
                    std::to_string(o.rope_length) + ", least_length " +
                    std::to_string(o.least_length) + ", rope_theta " + std::to_string(o.theta) +
                    ". All have to be above 0.");
  return o;
}

Ltx2Contexts add_ltx2_connectors(const Checkpoint& file, const Ltx2ConnectorOptions& options,
                                 const Source& context, Blocks& graph) {
  std::vector<Source> made;
  std::int64_t begin = 0;
  for (int i = 0; i < 2; ++i) {
    const std::string kind = kLtx2Kinds[i];
    const auto names = Ltx2ConnectorNames::find(file, kind);
    if (!names)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": tensors '" + kind +
                      "_embeddings_connector.*' are missing, which a model of LTX 2 has. Download "
                      "the whole file.");
    made.push_back(Ltx2ConnectorBuilder(file, *names, options, "text." + kind, graph)
                       .run(context, begin, options.heads[i]));
    begin += file.size(names->one("learnable_registers"), 1);
  }
  return {made[0], made[1]};
}

int Ltx2Connectors::match(const Checkpoint& file, const Value&) {
  return Ltx2ConnectorNames::find(file, "video") && Ltx2ConnectorNames::find(file, "audio") ? 100
                                                                                            : 0;
}

void Ltx2Connectors::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const Source context = graph.input("context", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  const Ltx2Contexts made =
      add_ltx2_connectors(file, read_ltx2_connector_options(config), context, graph);
  graph.output("video", made.video);
  graph.output("audio", made.audio);
  graph.setting("family", "ltx2_connectors");
}

}  // namespace heddle::denoisers
