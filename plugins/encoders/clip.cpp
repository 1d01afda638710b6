#include "clip.h"

#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "activations.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr const char* kTokens = "embeddings.token_embedding.weight";
constexpr int kOpenClipDepth = 23;  // H has 24 layers, G has 32; OpenAI's L has 12

// The file's prefix, when it holds a CLIP text encoder.
std::optional<std::string> find_prefix(const Checkpoint& file) {
  const std::optional<std::string> prefix = blocks::prefix_before(file, kTokens);
  return prefix && file.has(*prefix + "encoder.layers.0.self_attn.q_proj.weight") ? prefix
                                                                                  : std::nullopt;
}

// text_projection stands beside "text_model.", not inside.
std::string projection_name(std::string prefix) {
  constexpr std::string_view inner = "text_model.";
  if (prefix.ends_with(inner)) prefix.resize(prefix.size() - inner.size());
  return prefix + "text_projection.weight";
}

// Layer norm and linear weights come in pairs.
void pair(blocks::Slots& slots, const Weight& weight, const Weight& bias, const std::string& module,
          const Shape& shape) {
  slots.fill(weight, module + ".weight", shape);
  slots.fill(bias, module + ".bias", {shape[0]});
}

}  // namespace

void ClipEmbed::execute(Context& ctx) {
  const Tensor words = ctx[ids], table = ctx[positions];
  const std::int64_t length = words.size(1);
  if (length > table.size(0))
    throw Error(HEDDLE_INVALID_ARGUMENT, "CLIP has " + std::to_string(table.size(0)) +
                                             " positions, got " + std::to_string(length) +
                                             " tokens. Cut the text into chunks.");
  const Tensor embedded = blocks::wide_embedding(ctx, ctx[tokens], words);
  ctx[out] = ops::add(ctx, embedded, table.slice(0, 0, length).reshape({1, length, table.size(1)}));
}

void ClipLayer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const std::int64_t width = x.size(2), head_count = ctx[heads];
  const Tensor normed = ops::layer_norm(ctx, x, ctx[norm1], ctx[norm1_bias], ctx[eps]);
  const Tensor projected = blocks::wide_linear(ctx, normed, ctx[qkv], ctx[qkv_bias]);
  const auto third = [&](int i) {
    return blocks::split_heads(projected.slice(2, i * width, (i + 1) * width), head_count);
  };
  const double scale = 1 / std::sqrt(double(width / head_count));
  const ops::Mask mask = ctx[causal] ? ops::Mask::causal : ops::Mask::none;
  const Tensor attended =
      blocks::join_heads(ops::attention(ctx, third(0), third(1), third(2), {}, scale, mask));
  const Tensor middle =
      blocks::wide_linear(ctx, attended, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
  const Tensor inner = ops::layer_norm(ctx, middle, ctx[norm2], ctx[norm2_bias], ctx[eps]);
  const Tensor raised =
      ops::linear(ctx, inner, ctx[up], ctx[up_bias], heddle_activation(ctx[activation]));
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias], HEDDLE_ACT_NONE, middle);
}

void ClipFinish::execute(Context& ctx) {
  const Tensor x = ctx[hidden], normed = ctx.make(x.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, x, ctx[norm], ctx[norm_bias], ctx[eps], normed);
  const Tensor rows = ctx[eos], picked = ctx.make({x.size(0), x.size(2)}, HEDDLE_F32);
  // A row of a matrix by its index is what an embedding looks up: one item at a time, each its own
  // matrix.
  for (std::int64_t b = 0; b < normed.size(0); ++b) {
    const Tensor states = normed.slice(0, b, b + 1).reshape({normed.size(1), normed.size(2)});
    ops::embedding_into(ctx, states, rows.slice(0, b, b + 1), picked.slice(0, b, b + 1));
  }
  ctx[last] = normed;
  ctx[pooled] = picked;
}

void ClipProject::execute(Context& ctx) {
  ctx[out] = blocks::wide_linear(ctx, ctx[pooled], ctx[weight], {});
}

namespace {

void add_projection(const Checkpoint& file, const std::string& name, std::int64_t width,
                    const Source& pooled, Blocks& graph) {
  Block project = graph.add<ClipProject>("project");
  project.link(ClipProject::pooled, pooled);
  blocks::Slots(file, project, "project")
      .fill(ClipProject::weight, name, {file.size(name, 0), width});
  graph.output("projected", project[ClipProject::out]);
}

}  // namespace

int Clip::match(const Checkpoint& file, const Value&) { return find_prefix(file) ? 100 : 0; }

void Clip::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<std::string> found = find_prefix(file);
  if (!found) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no CLIP text encoder");
  const std::string& prefix = *found;
  const std::int64_t vocabulary = file.size(prefix + kTokens, 0),
                     width = file.size(prefix + kTokens, 1);
  const std::int64_t positions = file.size(prefix + "embeddings.position_embedding.weight", 0);
  const int depth = checked_cast<int>(
      config.get<std::int64_t>("num_hidden_layers",
                               blocks::layer_count(file, prefix + "encoder.layers.")),
      "num_hidden_layers");
  const std::int64_t heads = config.get<std::int64_t>("num_attention_heads", width / 64);
  const double eps = config.get<double>("layer_norm_eps", 1e-5);
  const heddle_activation activation = activation_named(
      config.get<std::string>("hidden_act", depth < kOpenClipDepth ? "quick_gelu" : "gelu"));
  if (heads <= 0 || width % heads != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": a width of " + std::to_string(width) + " does not divide into " +
                    std::to_string(heads) +
                    " heads. Give the config.json that belongs to this file.");

  Block embed = graph.add<ClipEmbed>("embed");
  embed.link(ClipEmbed::ids, graph.input("ids", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
  blocks::Slots embed_slots(file, embed, "embed");
  embed_slots.fill(ClipEmbed::tokens, prefix + kTokens, {vocabulary, width});
  embed_slots.fill(ClipEmbed::positions, prefix + "embeddings.position_embedding.weight",
                   {positions, width});
  Source hidden = embed[ClipEmbed::out];

  for (int i = 0; i < depth; ++i) {
    using B = ClipLayer;
    const std::string path = "layer." + std::to_string(i),
                      at = prefix + "encoder.layers." + std::to_string(i) + ".";
    Block layer = graph.add<B>(path);
    layer.link(B::hidden, hidden)
        .set(B::heads, heads)
        .set(B::eps, eps)
        .set(B::activation, std::int64_t(activation));
    blocks::Slots slots(file, layer, path);
    const std::string mlp_bias = at + "mlp.fc1.bias";
    const std::int64_t mlp = file.has(mlp_bias) ? file.size(mlp_bias, 0) : 4 * width;
    const auto thirds = [&](const char* kind) {
      const std::string tail = std::string("_proj.") + kind;
      return std::vector<Part>{
          {at + "self_attn.q" + tail}, {at + "self_attn.k" + tail}, {at + "self_attn.v" + tail}};
    };
    slots.fill(B::qkv, thirds("weight"), {3 * width, width});
    slots.fill(B::qkv_bias, thirds("bias"), {3 * width});
    pair(slots, B::norm1, B::norm1_bias, at + "layer_norm1", {width});
    pair(slots, B::norm2, B::norm2_bias, at + "layer_norm2", {width});
    pair(slots, B::proj, B::proj_bias, at + "self_attn.out_proj", {width, width});
    pair(slots, B::up, B::up_bias, at + "mlp.fc1", {mlp, width});
    pair(slots, B::down, B::down_bias, at + "mlp.fc2", {width, mlp});
    hidden = layer[B::out];
    graph.output(("layer." + std::to_string(i + 1)).c_str(), hidden);
    if (i + 2 == depth) graph.output("penultimate", hidden);
  }

  Block finish = graph.add<ClipFinish>("finish");
  finish.link(ClipFinish::hidden, hidden).set(ClipFinish::eps, eps);
  finish.link(ClipFinish::eos,
              graph.input("eos", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
  blocks::Slots finish_slots(file, finish, "finish");
  pair(finish_slots, ClipFinish::norm, ClipFinish::norm_bias, prefix + "final_layer_norm", {width});
  graph.output("last_hidden", finish[ClipFinish::last]);
  graph.output("pooled", finish[ClipFinish::pooled]);
  graph.setting("family", "clip");
  graph.setting("width", width);
  graph.setting("positions", positions);
  graph.setting("vocabulary", vocabulary);
  graph.setting("layers", std::int64_t(depth));

  const std::string projection = projection_name(prefix);
  graph.setting("projected", file.has(projection));
  if (file.has(projection))
    add_projection(file, projection, width, finish[ClipFinish::pooled], graph);
}

}  // namespace heddle::encoders
