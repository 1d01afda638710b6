#include "clip_vision.h"

#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "activations.h"
#include "clip.h"
#include "clip_names.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr std::int64_t kClipTowerHeads = 16, kClipTowerColours = 3;
constexpr int kOpenAiTowerDepth = 24;  // layers
// LLaVA's files have its projector beside the tower.
constexpr const char* kLlavaFirst = "multi_modal_projector.linear_1.weight";

struct ClipTowerSizes {
  std::int64_t width, patch, positions, heads, mlp;
  int depth;
  double eps;
  heddle_activation activation;
};

ClipTowerSizes clip_tower_sizes(const Checkpoint& file, const ClipNames& names,
                                const Value& config) {
  const std::string patches = names.in_tower("embeddings.patch_embedding.weight", "conv1.weight");
  ClipTowerSizes s{};
  s.width = file.size(patches, 0);
  s.patch = file.size(patches, 2);
  s.positions =
      file.size(names.in_tower("embeddings.position_embedding.weight", "positional_embedding"), 0);
  s.heads = config.get<std::int64_t>("num_attention_heads", kClipTowerHeads);
  s.depth = names.depth();
  s.mlp = file.size(names.in_layer(0, "mlp.fc1", "bias").front().tensor, 0);
  s.eps = config.get<double>("layer_norm_eps", 1e-5);
  s.activation = activation_named(
      config.get<std::string>("hidden_act", s.depth <= kOpenAiTowerDepth ? "quick_gelu" : "gelu"));
  if (s.heads <= 0 || s.width % s.heads != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": a width of " + std::to_string(s.width) + " does not divide into " +
                    std::to_string(s.heads) +
                    " heads. Give the config.json that belongs to this file.");
  return s;
}

// Of the pictures that it sees.
std::int64_t side_of(const ClipTowerSizes& sizes) {
  return std::int64_t(std::llround(std::sqrt(double(sizes.positions - 1)))) * sizes.patch;
}

// Builds the graph of one file.
class ClipTowerBuilder {
 public:
  ClipTowerBuilder(const Checkpoint& file, const ClipNames& names, const ClipTowerSizes& sizes,
                   Blocks& graph)
      : file_(file), names_(names), d_(sizes), graph_(graph) {}

  void run() {
    Source hidden = embed();
    for (int i = 0; i < d_.depth; ++i) {
      if (i + 1 == d_.depth) {
        graph_.output("penultimate", hidden);
        if (file_.has(kLlavaFirst)) add_tokens(hidden);
      }
      hidden = layer(i, hidden);
    }
    graph_.output("last_hidden", hidden);
    if (file_.has(names_.tower_projection())) add_projection(hidden);
  }

  Source run_pooled() {
    Source hidden = embed();
    for (int i = 0; i < d_.depth; ++i) hidden = layer(i, hidden);
    return add_pool(hidden);
  }

 private:
  void both(blocks::Slots& slots, const Weight& weight, const Weight& bias,
            const char* transformers, const char* open) const {
    for (const auto& [slot, kind] : {std::pair(&weight, ".weight"), std::pair(&bias, ".bias")})
      slots.fill(*slot,
                 names_.in_tower((std::string(transformers) + kind).c_str(),
                                 (std::string(open) + kind).c_str()),
                 {d_.width});
  }

  Source embed() {
    using B = ClipVisionEmbed;
    Block block = graph_.add<B>("embed");
    block
        .link(B::picture, graph_.input("picture", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH))
        .set(B::eps, d_.eps);
    blocks::Slots slots(file_, block, "embed");
    slots.fill(B::patches, names_.in_tower("embeddings.patch_embedding.weight", "conv1.weight"),
               {d_.width, kClipTowerColours, d_.patch, d_.patch});
    slots.fill(B::whole, names_.in_tower("embeddings.class_embedding", "class_embedding"),
               {d_.width});
    slots.fill(B::positions,
               names_.in_tower("embeddings.position_embedding.weight", "positional_embedding"),
               {d_.positions, d_.width});
    both(slots, B::norm, B::norm_bias, "pre_layrnorm", "ln_pre");  // so it is spelled
    return block[B::out];
  }

  Source layer(int index, const Source& hidden) {
    using B = ClipLayer;
    const std::string path = "layer." + std::to_string(index);
    Block layer = graph_.add<B>(path);
    layer.link(B::hidden, hidden)
        .set(B::heads, d_.heads)
        .set(B::eps, d_.eps)
        .set(B::activation, std::int64_t(d_.activation))
        .set(B::causal, false);
    blocks::Slots slots(file_, layer, path);
    const auto fill = [&](const Weight& weight, const Weight& bias, const char* module,
                          const Shape& shape) {
      slots.fill(weight, names_.in_layer(index, module, "weight"), shape);
      slots.fill(bias, names_.in_layer(index, module, "bias"), {shape[0]});
    };
    slots.fill(B::qkv, names_.qkv(index, "weight"), {3 * d_.width, d_.width});
    slots.fill(B::qkv_bias, names_.qkv(index, "bias"), {3 * d_.width});
    fill(B::norm1, B::norm1_bias, "layer_norm1", {d_.width});
    fill(B::norm2, B::norm2_bias, "layer_norm2", {d_.width});
    fill(B::proj, B::proj_bias, "self_attn.out_proj", {d_.width, d_.width});
    fill(B::up, B::up_bias, "mlp.fc1", {d_.mlp, d_.width});
    fill(B::down, B::down_bias, "mlp.fc2", {d_.width, d_.mlp});
    return layer[B::out];
  }

  Source add_pool(const Source& hidden) {
    using B = ClipVisionPool;
    Block pool = graph_.add<B>("pool");
    pool.link(B::hidden, hidden).set(B::eps, d_.eps);
    blocks::Slots slots(file_, pool, "pool");
    both(slots, B::norm, B::norm_bias, "post_layernorm", "ln_post");
    return pool[B::out];
  }

  void add_projection(const Source& hidden) {
    const Source pooled = add_pool(hidden);
    const std::string name = names_.tower_projection();
    Block project = graph_.add<ClipProject>("project");
    project.link(ClipProject::pooled, pooled);
    blocks::Slots last(file_, project, "project");
    const std::int64_t out = file_.size(name, names_.is_turned() ? 1 : 0);
    if (names_.is_turned())
      last.fill(ClipProject::columns, name, {d_.width, out});
    else
      last.fill(ClipProject::weight, name, {out, d_.width});
    graph_.output("projected", project[ClipProject::out]);
    graph_.setting("projected_width", out);
  }

  void add_tokens(const Source& hidden) {
    using B = ClipVisionTokens;
    Block block = graph_.add<B>("tokens");
    block.link(B::hidden, hidden);
    blocks::Slots slots(file_, block, "tokens");
    const std::int64_t out = file_.size(kLlavaFirst, 0);
    const auto fill = [&](const Weight& weight, const Weight& bias, const char* module,
                          std::int64_t in) {
      slots.fill(weight, std::string(module) + ".weight", {out, in});
      slots.fill(bias, std::string(module) + ".bias", {out});
    };
    fill(B::in, B::in_bias, "multi_modal_projector.linear_1", d_.width);
    fill(B::last, B::last_bias, "multi_modal_projector.linear_2", out);
    graph_.output("mm_projected", block[B::out]);
    graph_.setting("mm_width", out);
  }

  const Checkpoint& file_;
  const ClipNames& names_;
  const ClipTowerSizes& d_;
  Blocks& graph_;
};

}  // namespace

void ClipVisionEmbed::execute(Context& ctx) {
  const Tensor matrix = ctx[patches], table = ctx[positions], first = ctx[whole];
  const auto step = checked_cast<std::int32_t>(matrix.size(2), "patch");
  const Tensor grid = blocks::wide_conv2d(ctx, ops::cast(ctx, ctx[picture], ctx.compute()), matrix,
                                          {}, heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  const std::int64_t items = grid.size(0), count = grid.size(1) * grid.size(2),
                     width = grid.size(3);
  if (1 + count != table.size(0))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the vision tower has positions for " +
                                             std::to_string(table.size(0) - 1) +
                                             " patches, the picture has " + std::to_string(count) +
                                             ". Give it pictures of its size.");
  const Tensor tokens = ctx.make({items, 1 + count, width}, HEDDLE_F32);
  for (std::int64_t item = 0; item < items; ++item)
    ops::copy_into(ctx, first.reshape({1, 1, width}),
                   tokens.slice(0, item, item + 1).slice(1, 0, 1));
  ops::copy_into(ctx, grid.reshape({items, count, width}), tokens.slice(1, 1, 1 + count));
  const Tensor placed = ops::add(ctx, tokens, table.reshape({1, 1 + count, width}));
  const Tensor normed = ctx.make(placed.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, placed, ctx[norm], ctx[norm_bias], ctx[eps], normed);
  ctx[out] = normed;
}

void ClipVisionPool::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor first = ops::contiguous(ctx, x.slice(1, 0, 1));
  const Tensor normed = ctx.make(first.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, first, ctx[norm], ctx[norm_bias], ctx[eps], normed);
  ctx[out] = normed.reshape({x.size(0), x.size(2)});
}

void ClipVisionTokens::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor patches = ops::cast(ctx, x.slice(1, 1, x.size(1)), ctx.compute());
  const Tensor raised = ops::linear(ctx, patches, ctx[in], ctx[in_bias], HEDDLE_ACT_GELU);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[last], ctx[last_bias]);
}

int ClipVision::match(const Checkpoint& file, const Value&) {
  return ClipNames::find_tower(file) ? 100 : 0;
}

ClipTower add_clip_tower(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<ClipNames> names = ClipNames::find_tower(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": it has no CLIP vision tower");
  const ClipTowerSizes sizes = clip_tower_sizes(file, *names, config);
  const Source pooled = ClipTowerBuilder(file, *names, sizes, graph).run_pooled();
  return {pooled, sizes.width, side_of(sizes)};
}

void ClipVision::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<ClipNames> names = ClipNames::find_tower(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no CLIP vision tower");
  const ClipTowerSizes sizes = clip_tower_sizes(file, *names, config);
  ClipTowerBuilder(file, *names, sizes, graph).run();
  graph.setting("family", "clip_vision");
  graph.setting("width", sizes.width);
  graph.setting("tokens", sizes.positions);
  graph.setting("size", config.get<std::int64_t>("image_size", side_of(sizes)));
  graph.setting("sees_layers", true);
}

}  // namespace heddle::encoders
