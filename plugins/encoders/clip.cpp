#include "clip.h"

#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "activations.h"
#include "clip_names.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr int kOpenClipDepth = 23;  // H has 24 layers, G has 32; OpenAI's L has 12

// Products of a vector (1, K) and the columns of a matrix (K, N): the products of all rows, added
// up half by half.
Tensor times_columns(Context& ctx, const Tensor& vector, const Tensor& matrix) {
  std::int64_t rows = matrix.size(0);
  const std::int64_t columns = matrix.size(1);
  Tensor sums = ctx.make({rows, columns}, HEDDLE_F32);
  ops::mul_into(ctx, matrix, vector.reshape({rows, 1}), sums);
  for (; rows > 1; rows = (rows + 1) / 2) {
    const std::int64_t half = (rows + 1) / 2;
    const Tensor next = ctx.make({half, columns}, HEDDLE_F32);
    ops::add_into(ctx, sums.slice(0, 0, rows - half), sums.slice(0, half, rows),
                  next.slice(0, 0, rows - half));
    if (rows % 2 != 0)
      ops::copy_into(ctx, sums.slice(0, half - 1, half), next.slice(0, half - 1, half));
    sums = next;
  }
  return sums;
}

}  // namespace

void ClipEmbed::execute(Context& ctx) {
  const Tensor words = ctx[ids], table = ctx[positions];
  const std::int64_t length = words.size(1);
  if (length > table.size(0))
    throw Error(HEDDLE_INVALID_ARGUMENT, "CLIP has " + std::to_string(table.size(0)) +
                                             " positions, got " + std::to_string(length) +
                                             " tokens. Cut the text into chunks.");
  Tensor embedded = blocks::wide_embedding(ctx, ctx[tokens], words);
  if (ctx.has(vectors))
    embedded = ops::add(ctx, ops::mul(ctx, embedded, ctx[is_word]), ctx[vectors]);
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
  const Tensor vectors = ctx[pooled];
  if (ctx[weight]) {
    ctx[out] = blocks::wide_linear(ctx, vectors, ctx[weight], {});
    return;
  }
  const Tensor matrix = ctx[columns],
               made = ctx.make({vectors.size(0), matrix.size(1)}, HEDDLE_F32);
  for (std::int64_t row = 0; row < vectors.size(0); ++row)
    ops::copy_into(ctx, times_columns(ctx, vectors.slice(0, row, row + 1), matrix),
                   made.slice(0, row, row + 1));
  ctx[out] = made;
}

namespace {

struct ClipSizes {
  std::int64_t width, vocabulary, positions, heads;
  int depth;
  double eps;
  heddle_activation activation;
};

ClipSizes clip_sizes_of(const Checkpoint& file, const Value& config, const ClipNames& names) {
  ClipSizes d{};
  d.vocabulary = file.size(names.tokens(), 0);
  d.width = file.size(names.tokens(), 1);
  d.positions = file.size(names.positions(), 0);
  d.depth = checked_cast<int>(config.get<std::int64_t>("num_hidden_layers", names.depth()),
                              "num_hidden_layers");
  d.heads = config.get<std::int64_t>("num_attention_heads", d.width / 64);
  d.eps = config.get<double>("layer_norm_eps", 1e-5);
  d.activation = activation_named(
      config.get<std::string>("hidden_act", d.depth < kOpenClipDepth ? "quick_gelu" : "gelu"));
  if (d.heads <= 0 || d.width % d.heads != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": a width of " + std::to_string(d.width) + " does not divide into " +
                    std::to_string(d.heads) +
                    " heads. Give the config.json that belongs to this file.");
  return d;
}

// Builds the graph of one file.
class ClipBuilder {
 public:
  ClipBuilder(const Checkpoint& file, const ClipNames& names, const ClipSizes& sizes, Blocks& graph)
      : file_(file), names_(names), d_(sizes), graph_(graph) {}

  // normed: after how many layers the states are given under the final norm.
  void run(std::int64_t normed) {
    Source hidden = embed(), stopped = hidden;
    for (int i = 0; i < d_.depth; ++i) {
      hidden = layer(i, hidden);
      graph_.output(("layer." + std::to_string(i + 1)).c_str(), hidden);
      if (i + 2 == d_.depth) graph_.output("penultimate", hidden);
      if (i + 1 == normed) stopped = hidden;
    }
    eos_ = graph_.input("eos", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const Block last = finish("finish", hidden);
    graph_.output("last_hidden", normed == d_.depth ? last[ClipFinish::last]
                                                    : finish("stopped", stopped)[ClipFinish::last]);
    graph_.output("pooled", last[ClipFinish::pooled]);
    if (names_.has_projection()) add_projection(last[ClipFinish::pooled]);
  }

 private:
  void both(blocks::Slots& slots, const Weight& weight, const Weight& bias, int index,
            const char* module, const Shape& shape) const {
    slots.fill(weight, names_.in_layer(index, module, "weight"), shape);
    slots.fill(bias, names_.in_layer(index, module, "bias"), {shape[0]});
  }

  Source embed() {
    Block embed = graph_.add<ClipEmbed>("embed");
    embed.link(ClipEmbed::ids,
               graph_.input("ids", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
    constexpr std::uint32_t kOptional =
        HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH;
    embed.link(ClipEmbed::vectors, graph_.input("vectors", kOptional))
        .link(ClipEmbed::is_word, graph_.input("is_word", kOptional));
    blocks::Slots slots(file_, embed, "embed");
    slots.fill(ClipEmbed::tokens, names_.tokens(), {d_.vocabulary, d_.width});
    slots.fill(ClipEmbed::positions, names_.positions(), {d_.positions, d_.width});
    return embed[ClipEmbed::out];
  }

  Source layer(int index, const Source& hidden) {
    using B = ClipLayer;
    const std::string path = "layer." + std::to_string(index);
    Block layer = graph_.add<B>(path);
    layer.link(B::hidden, hidden)
        .set(B::heads, d_.heads)
        .set(B::eps, d_.eps)
        .set(B::activation, std::int64_t(d_.activation));
    blocks::Slots slots(file_, layer, path);
    const std::string mlp_bias = names_.in_layer(index, "mlp.fc1", "bias").front().tensor;
    const std::int64_t mlp = file_.has(mlp_bias) ? file_.size(mlp_bias, 0) : 4 * d_.width;
    slots.fill(B::qkv, names_.qkv(index, "weight"), {3 * d_.width, d_.width});
    slots.fill(B::qkv_bias, names_.qkv(index, "bias"), {3 * d_.width});
    both(slots, B::norm1, B::norm1_bias, index, "layer_norm1", {d_.width});
    both(slots, B::norm2, B::norm2_bias, index, "layer_norm2", {d_.width});
    both(slots, B::proj, B::proj_bias, index, "self_attn.out_proj", {d_.width, d_.width});
    both(slots, B::up, B::up_bias, index, "mlp.fc1", {mlp, d_.width});
    both(slots, B::down, B::down_bias, index, "mlp.fc2", {d_.width, mlp});
    return layer[B::out];
  }

  Block finish(const std::string& path, const Source& hidden) {
    using B = ClipFinish;
    Block finish = graph_.add<B>(path);
    finish.link(B::hidden, hidden).link(B::eos, eos_).set(B::eps, d_.eps);
    blocks::Slots slots(file_, finish, path);
    slots.fill(B::norm, names_.final_norm("weight"), {d_.width});
    slots.fill(B::norm_bias, names_.final_norm("bias"), {d_.width});
    return finish;
  }

  void add_projection(const Source& pooled) {
    const std::string name = names_.projection();
    Block project = graph_.add<ClipProject>("project");
    project.link(ClipProject::pooled, pooled);
    blocks::Slots slots(file_, project, "project");
    if (names_.is_turned())
      slots.fill(ClipProject::columns, name, {d_.width, file_.size(name, 1)});
    else
      slots.fill(ClipProject::weight, name, {file_.size(name, 0), d_.width});
    graph_.output("projected", project[ClipProject::out]);
  }

  const Checkpoint& file_;
  const ClipNames& names_;
  const ClipSizes& d_;
  Blocks& graph_;
  Source eos_;
};

}  // namespace

int Clip::match(const Checkpoint& file, const Value&) { return ClipNames::find(file) ? 100 : 0; }

void Clip::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<ClipNames> names = ClipNames::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no CLIP text encoder");
  const ClipSizes sizes = clip_sizes_of(file, config, *names);
  // As ComfyUI: a number beyond the encoder's layers means the last.
  const auto stop = config.get<std::int64_t>("normed_layer", -1);
  const bool is_inside = stop < 0 && -stop <= sizes.depth;
  ClipBuilder(file, *names, sizes, graph).run(is_inside ? sizes.depth + 1 + stop : sizes.depth);
  graph.setting("family", "clip");
  graph.setting("width", sizes.width);
  graph.setting("positions", sizes.positions);
  graph.setting("vocabulary", sizes.vocabulary);
  graph.setting("layers", std::int64_t(sizes.depth));
  graph.setting("projected", names->has_projection());
}

}  // namespace heddle::encoders
