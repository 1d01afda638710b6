#include "t5.h"

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "activations.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"
#include "t5_names.h"

namespace heddle::encoders {
namespace {

// "gated-gelu" means the tanh form, as in transformers; "relu" and "gated-silu" mean what they say.
heddle_activation mlp_activation(const Value& config, bool gated) {
  const std::string projection =
      config.get<std::string>("feed_forward_proj", gated ? "gated-gelu" : "relu");
  if (projection == "gated-gelu") return HEDDLE_ACT_GELU_TANH;
  const std::string named = projection.starts_with("gated-") ? projection.substr(6) : projection;
  return activation_named(config.get<std::string>("dense_act_fn", named));
}

// What an operand of kernels is: a table may stand in blocks, its rows may not.
heddle_dtype device_float(heddle_dtype table) {
  return table == HEDDLE_F16 || table == HEDDLE_BF16 ? table : HEDDLE_F32;
}

// Queries, keys and values side by side. Values come from a matrix of their own where a file has
// quantised it in another way.
Tensor project(Context& ctx, const Tensor& x) {
  const Tensor matrix = ctx[T5Layer::qkv], values = ctx[T5Layer::v];
  if (!values) return blocks::wide_linear(ctx, x, matrix, {});
  const std::int64_t both = matrix.size(0), all = both + values.size(0);
  const Tensor out = ctx.make({x.size(0), x.size(1), all}, HEDDLE_F32);
  ops::linear_into(ctx, x, matrix, {}, HEDDLE_ACT_NONE, {}, out.slice(2, 0, both));
  ops::linear_into(ctx, x, values, {}, HEDDLE_ACT_NONE, {}, out.slice(2, both, all));
  return out;
}

}  // namespace

void T5Embed::execute(Context& ctx) {
  ctx[out] = blocks::wide_embedding(ctx, ctx[tokens], ctx[ids]);
}

void T5Bias::execute(Context& ctx) {
  const std::int64_t length = ctx[ids].size(1);
  const Tensor values = ctx[table];
  const heddle_relative_bucket_attrs attrs{
      checked_cast<std::int32_t>(values.size(0), "buckets"),
      checked_cast<std::int32_t>(ctx[max_distance], "relative_attention_max_distance"), 1, 0};
  const Tensor by_pair = ctx.make({length, length, values.size(1)}, device_float(values.dtype()));
  ops::embedding_into(ctx, values, ops::relative_bucket(ctx, length, length, attrs), by_pair);
  const Tensor by_head = ops::contiguous(ctx, by_pair.permute({2, 0, 1}));
  ctx[out] = by_head.reshape({1, by_head.size(0), length, length});
}

void T5Layer::execute(Context& ctx) {
  const Tensor x = ctx[hidden];
  const Tensor normed = ops::rms_norm(ctx, x, ctx[norm1], ctx[eps]);
  // Without a scale T5's scores are large, and so is what is lost of them in 16 bits.
  const Tensor projected = project(ctx, normed);
  const std::int64_t inner = projected.size(2) / 3, head_count = ctx[heads];
  const auto third = [&](int i) {
    return blocks::split_heads(projected.slice(2, i * inner, (i + 1) * inner), head_count);
  };
  const Tensor attended =
      blocks::join_heads(ops::attention(ctx, third(0), third(1), third(2), ctx[bias], 1.0));
  const Tensor middle = blocks::wide_linear(ctx, attended, ctx[proj], {}, HEDDLE_ACT_NONE, x);
  const Tensor again = ops::rms_norm(ctx, middle, ctx[norm2], ctx[eps]);
  const auto kind = heddle_activation(ctx[activation]);
  Tensor raised;
  if (ctx[gated]) {
    const Tensor both = blocks::wide_linear(ctx, again, ctx[up], {});
    const std::int64_t width = both.size(2) / 2;
    raised = ctx.make({both.size(0), both.size(1), width});
    ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width), kind,
                               raised);
  } else {
    raised = ops::linear(ctx, again, ctx[up], {}, kind);
  }
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], {}, HEDDLE_ACT_NONE, middle);
}

void T5Finish::execute(Context& ctx) {
  const Tensor x = ctx[hidden], normed = ctx.make(x.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, x, ctx[norm], ctx[eps], normed);
  ctx[out] = normed;
}

int T5::match(const Checkpoint& file, const Value&) { return T5Names::find(file) ? 100 : 0; }

void T5::build(const Checkpoint& file, const Value& config, Blocks& graph) {
  const std::optional<T5Names> names = T5Names::find(file);
  if (!names) throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": this is no T5 encoder");
  const std::string tokens = names->tokens(), first_bias = names->in_layer(0, "bias");
  const std::int64_t vocabulary = file.size(tokens, 0), width = file.size(tokens, 1),
                     inner = file.size(names->in_layer(0, "q"), 0);
  const std::int64_t buckets = file.size(first_bias, 0), heads = file.size(first_bias, 1);
  const int depth =
      checked_cast<int>(config.get<std::int64_t>("num_layers", names->layers()), "num_layers");
  const double eps = config.get<double>("layer_norm_epsilon", 1e-6);
  const std::int64_t max_distance =
      config.get<std::int64_t>("relative_attention_max_distance", 128);
  const bool gated = file.has(names->in_layer(0, "gate"));
  const heddle_activation activation = mlp_activation(config, gated);
  if (heads <= 0 || inner % heads != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": an attention of width " +
                                             std::to_string(inner) + " does not divide into " +
                                             std::to_string(heads) + " heads ('" + first_bias +
                                             "')");

  const Source ids = graph.input("ids", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
  Block embed = graph.add<T5Embed>("embed");
  embed.link(T5Embed::ids, ids);
  blocks::Slots(file, embed, "embed").fill(T5Embed::tokens, tokens, {vocabulary, width});
  Source hidden = embed[T5Embed::out], bias;

  for (int i = 0; i < depth; ++i) {
    using B = T5Layer;
    const std::string path = "layer." + std::to_string(i);
    const auto name = [&](const char* part) { return names->in_layer(i, part); };
    if (const std::string table = name("bias"); file.has(table)) {
      Block own = graph.add<T5Bias>(path + ".bias");
      own.link(T5Bias::ids, ids).set(T5Bias::max_distance, max_distance);
      blocks::Slots(file, own, path + ".bias").fill(T5Bias::table, table, {buckets, heads});
      bias = own[T5Bias::out];
    }
    Block layer = graph.add<B>(path + ".block");
    layer.link(B::hidden, hidden).link(B::bias, bias).set(B::heads, heads).set(B::eps, eps);
    layer.set(B::activation, std::int64_t(activation)).set(B::gated, gated);
    blocks::Slots slots(file, layer, path + ".block");
    const std::string first = name(gated ? "gate" : "only"), values = name("v");
    const std::int64_t mlp_width = file.has(first) ? file.size(first, 0) : 4 * width;
    slots.fill(B::norm1, name("norm1"), {width});
    const bool apart = file.has(values) && file.has(name("q")) &&
                       file.info(values).dtype != file.info(name("q")).dtype;
    if (apart) {
      slots.fill(B::qkv, {{name("q")}, {name("k")}}, {2 * inner, width});
      slots.fill(B::v, values, {inner, width});
    } else {
      slots.fill(B::qkv, {{name("q")}, {name("k")}, {values}}, {3 * inner, width});
    }
    slots.fill(B::proj, name("o"), {width, inner});
    slots.fill(B::norm2, name("norm2"), {width});
    if (gated)
      slots.fill(B::up, {{first}, {name("up")}}, {2 * mlp_width, width});
    else
      slots.fill(B::up, first, {mlp_width, width});
    slots.fill(B::down, name("down"), {width, mlp_width});
    hidden = layer[B::out];
  }

  Block finish = graph.add<T5Finish>("finish");
  finish.link(T5Finish::hidden, hidden).set(T5Finish::eps, eps);
  blocks::Slots(file, finish, "finish").fill(T5Finish::norm, names->final_norm(), {width});
  graph.output("last_hidden", finish[T5Finish::out]);
  graph.setting("family", "t5");
  graph.setting("kind", names->is_umt5() ? "umt5" : names->is_byt5() ? "byt5" : "t5");
  graph.setting("width", width);
  graph.setting("vocabulary", vocabulary);
  graph.setting("layers", std::int64_t(depth));
}

}  // namespace heddle::encoders
