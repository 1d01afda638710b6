#include "siglip.h"

#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "activations.h"
#include "clip.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr std::string_view kSiglipPatches = "embeddings.patch_embedding.weight";
constexpr std::int64_t kSiglipHead = 72, kSiglipColours = 3;
// Layers from the end that USO reads a style off; the deepest first.
constexpr int kSeenDepths[] = {20, 11, 2};

void fill_both(blocks::Slots& slots, const Weight& weight, const Weight& bias,
               const std::string& module, const Shape& shape) {
  slots.fill(weight, module + ".weight", shape);
  slots.fill(bias, module + ".bias", {shape[0]});
}

// Pixels of a picture's side: published towers of patches of 14 leave a rest of 384 unseen.
std::int64_t siglip_size(std::int64_t positions, std::int64_t patch, const Value& config) {
  const auto side = std::int64_t(std::llround(std::sqrt(double(positions))));
  const bool is_so400m = positions == 729 && patch == 14;
  return config.get<std::int64_t>("image_size", is_so400m ? 384 : side * patch);
}

struct SiglipSizes {
  std::int64_t width, patch, positions, heads, mlp;
  double eps;
  heddle_activation activation;
};

SiglipSizes read_siglip_sizes(const Checkpoint& file, const std::string& prefix,
                              const Value& config) {
  const std::string patches = prefix + std::string(kSiglipPatches),
                    up = prefix + "encoder.layers.0.mlp.fc1.bias";
  SiglipSizes s{};
  s.width = file.size(patches, 0);
  s.patch = file.size(patches, 2);
  s.positions = file.size(prefix + "embeddings.position_embedding.weight", 0);
  s.heads = config.get<std::int64_t>("num_attention_heads", s.width / kSiglipHead);
  s.mlp = file.has(up) ? file.size(up, 0) : 4 * s.width;
  s.eps = config.get<double>("layer_norm_eps", 1e-6);
  s.activation = activation_named(config.get<std::string>("hidden_act", "gelu_pytorch_tanh"));
  if (s.heads <= 0 || s.width % s.heads != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": a width of " + std::to_string(s.width) + " does not divide into " +
                    std::to_string(s.heads) +
                    " heads. Give the config.json that belongs to this file.");
  return s;
}

heddle::Source add_siglip_layer(const Checkpoint& file, const std::string& prefix, int index,
                                const SiglipSizes& s, const heddle::Source& hidden, Blocks& graph) {
  using B = ClipLayer;
  const std::string path = "layer." + std::to_string(index),
                    at = prefix + "encoder.layers." + std::to_string(index) + ".";
  Block layer = graph.add<B>(path);
  layer.link(B::hidden, hidden)
      .set(B::heads, s.heads)
      .set(B::eps, s.eps)
      .set(B::activation, std::int64_t(s.activation))
      .set(B::causal, false);
  blocks::Slots slots(file, layer, path);
  const auto thirds = [&](const char* kind) {
    const std::string tail = std::string("_proj.") + kind;
    return std::vector<Part>{
        {at + "self_attn.q" + tail}, {at + "self_attn.k" + tail}, {at + "self_attn.v" + tail}};
  };
  slots.fill(B::qkv, thirds("weight"), {3 * s.width, s.width});
  slots.fill(B::qkv_bias, thirds("bias"), {3 * s.width});
  fill_both(slots, B::norm1, B::norm1_bias, at + "layer_norm1", {s.width});
  fill_both(slots, B::norm2, B::norm2_bias, at + "layer_norm2", {s.width});
  fill_both(slots, B::proj, B::proj_bias, at + "self_attn.out_proj", {s.width, s.width});
  fill_both(slots, B::up, B::up_bias, at + "mlp.fc1", {s.mlp, s.width});
  fill_both(slots, B::down, B::down_bias, at + "mlp.fc2", {s.width, s.mlp});
  return layer[B::out];
}

}  // namespace

void SiglipEmbed::execute(Context& ctx) {
  const Tensor matrix = ctx[patches], table = ctx[positions];
  const auto step = checked_cast<std::int32_t>(matrix.size(2), "patch");
  const Tensor grid =
      blocks::wide_conv2d(ctx, ops::cast(ctx, ctx[picture], ctx.compute()), matrix,
                          ctx[patches_bias], heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  const std::int64_t count = grid.size(1) * grid.size(2);
  if (count != table.size(0))
    throw Error(HEDDLE_INVALID_ARGUMENT, "the vision tower has positions for " +
                                             std::to_string(table.size(0)) +
                                             " patches, the picture has " + std::to_string(count) +
                                             ". Give it pictures of its size.");
  ctx[out] = ops::add(ctx, grid.reshape({grid.size(0), count, grid.size(3)}),
                      table.reshape({1, count, grid.size(3)}));
}

void SiglipFinish::execute(Context& ctx) {
  const Tensor x = ctx[hidden], normed = ctx.make(x.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, x, ctx[norm], ctx[norm_bias], ctx[eps], normed);
  ctx[out] = normed;
}

void ReduxTokens::execute(Context& ctx) {
  const Tensor raised = ops::linear(ctx, ops::cast(ctx, ctx[hidden], ctx.compute()), ctx[up],
                                    ctx[up_bias], HEDDLE_ACT_SILU);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias]);
}

std::optional<std::string> siglip_prefix(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, kSiglipPatches);
  // CLIP's towers have a class token, and patches without a bias.
  const bool is_siglip = prefix && file.has(*prefix + "embeddings.patch_embedding.bias") &&
                         !file.has(*prefix + "embeddings.class_embedding") &&
                         file.has(*prefix + "encoder.layers.0.self_attn.q_proj.weight");
  return is_siglip ? prefix : std::nullopt;
}

int SiglipVision::match(const Checkpoint& file, const Value&) {
  return siglip_prefix(file) ? 100 : 0;
}

SiglipTower add_siglip(const Checkpoint& file, const std::string& prefix, const Value& config,
                       const heddle::Source& picture, Blocks& graph) {
  const SiglipSizes s = read_siglip_sizes(file, prefix, config);
  Block embed = graph.add<SiglipEmbed>("embed");
  embed.link(SiglipEmbed::picture, picture);
  blocks::Slots slots(file, embed, "embed");
  fill_both(slots, SiglipEmbed::patches, SiglipEmbed::patches_bias,
            prefix + "embeddings.patch_embedding", {s.width, kSiglipColours, s.patch, s.patch});
  slots.fill(SiglipEmbed::positions, prefix + "embeddings.position_embedding.weight",
             {s.positions, s.width});
  SiglipTower tower{.layers = {},
                    .seen = embed[SiglipEmbed::out],
                    .width = s.width,
                    .positions = s.positions,
                    .patch = s.patch};
  const int layers = blocks::layer_count(file, prefix + "encoder.layers.");
  for (int i = 0; i < layers; ++i)
    tower.layers.push_back(tower.seen = add_siglip_layer(file, prefix, i, s, tower.seen, graph));
  Block finish = graph.add<SiglipFinish>("finish");
  finish.link(SiglipFinish::hidden, tower.seen).set(SiglipFinish::eps, s.eps);
  blocks::Slots last(file, finish, "finish");
  fill_both(last, SiglipFinish::norm, SiglipFinish::norm_bias, prefix + "post_layernorm",
            {s.width});
  tower.seen = finish[SiglipFinish::out];
  return tower;
}

void SiglipVision::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<std::string> prefix = siglip_prefix(file);
  if (!prefix)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no vision tower of SigLIP");
  const heddle::Source picture =
      graph.input("picture", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  const SiglipTower tower = add_siglip(file, *prefix, config, picture, graph);
  const auto layers = int(tower.layers.size());
  const bool sees_depths = layers >= kSeenDepths[0];
  for (const int depth : kSeenDepths)
    if (sees_depths)
      graph.output(("hidden_" + std::to_string(depth)).c_str(),
                   tower.layers[std::size_t(layers - depth)]);
  graph.output("last_hidden", tower.seen);
  graph.setting("family", "siglip_vision");
  graph.setting("width", tower.width);
  graph.setting("tokens", tower.positions);
  graph.setting("sees_depths", sees_depths);
  graph.setting("size", siglip_size(tower.positions, tower.patch, config));
  graph.setting("pixel_mean", 0.5);  // pictures go from -1 to 1
  graph.setting("pixel_deviation", 0.5);
}

int Redux::match(const Checkpoint& file, const Value&) {
  return file.has("redux_up.weight") && file.has("redux_down.weight") ? 100 : 0;
}

void Redux::build(const Checkpoint& file, const Value&, Blocks& graph) {
  using B = ReduxTokens;
  const std::int64_t inner = file.size("redux_up.weight", 0),
                     width = file.size("redux_up.weight", 1),
                     out = file.size("redux_down.weight", 0);
  Block block = graph.add<B>("tokens");
  block.link(B::hidden, graph.input("hidden", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH));
  blocks::Slots slots(file, block, "tokens");
  fill_both(slots, B::up, B::up_bias, "redux_up", {inner, width});
  fill_both(slots, B::down, B::down_bias, "redux_down", {out, inner});
  graph.output("tokens", block[B::out]);
  graph.setting("family", "redux");
  graph.setting("width", out);
  graph.setting("hidden_width", width);
}

}  // namespace heddle::encoders
