#include "ip_adapter.h"

#include <cmath>

#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"
#include "plugins/blocks/slots.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

constexpr std::int64_t kResamplerHead = 64;
const std::string kProjection = "image_proj.", kKeys = "ip_adapter.1.to_k_ip.weight";

Tensor wide_layer_norm(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       double eps) {
  const Tensor normed = ctx.make(x.shape(), HEDDLE_F32);
  ops::layer_norm_into(ctx, x, weight, bias, eps, normed);
  return normed;
}

void fill_pair(blocks::Slots& slots, const Weight& weight, const Weight& bias,
               const std::string& module, const Shape& shape) {
  slots.fill(weight, kProjection + module + ".weight", shape);
  slots.fill(bias, kProjection + module + ".bias", {shape.front()});
}

bool reads_faces(const Checkpoint& file) {
  const bool has_mlp = file.has(kProjection + "proj.2.weight");
  return file.has("ip_adapter.0.to_q_lora.down.weight") ||
         file.has(kProjection + "perceiver_resampler.proj_in.weight") ||
         (has_mlp && !file.has(kProjection + "proj.3.weight"));
}

// Blocks of the UNet that the file has keys and values for.
std::int64_t adapted_blocks(const Checkpoint& file) {
  std::int64_t count = 0;
  for (std::uint32_t i = 0; i < file.size(); ++i)
    if (const std::string name = file.name(i);
        name.starts_with("ip_adapter.") && name.ends_with(".to_k_ip.weight"))
      ++count;
  return count;
}

// Builds one file's graph.
class IpAdapterBuilder {
 public:
  IpAdapterBuilder(const Checkpoint& file, Blocks& graph)
      : file_(file),
        graph_(graph),
        context_(file.size(kKeys, 1)),
        seen_(graph.input("seen", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH)) {}

  void run() {
    if (context_ == 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file_.path() + ": '" + kKeys +
                      "' has no columns: the IP-Adapter is for texts of width 0. The file is "
                      "damaged.");
    if (file_.has(kProjection + "latents"))
      add_resampler();
    else if (file_.has(kProjection + "proj.3.weight"))
      add_mlp();
    else
      add_tokens();
    graph_.setting("family", "ip-adapter");
    graph_.setting("adapts", std::string("unet"));
    graph_.setting("context", context_);
    graph_.setting("blocks", adapted_blocks(file_));
  }

 private:
  void tell(bool reads_layers, std::int64_t width, std::int64_t tokens) {
    graph_.setting("reads_layers", reads_layers);
    graph_.setting("seen_width", width);
    graph_.setting("tokens", tokens);
  }

  void add_tokens() {
    using B = IpAdapterTokens;
    const std::string proj = kProjection + "proj.weight";
    const std::int64_t rows = file_.size(proj, 0), width = file_.size(proj, 1);
    Block block = graph_.add<B>("tokens");
    block.link(B::seen, seen_);
    blocks::Slots slots(file_, block, "tokens");
    fill_pair(slots, B::proj, B::proj_bias, "proj", {rows / context_ * context_, width});
    fill_pair(slots, B::norm, B::norm_bias, "norm", {context_});
    graph_.output("tokens", block[B::out]);
    tell(false, width, rows / context_);
  }

  void add_mlp() {
    using B = IpAdapterMlp;
    const std::int64_t width = file_.size(kProjection + "proj.0.weight", 1),
                       inner = file_.size(kProjection + "proj.0.weight", 0);
    Block block = graph_.add<B>("tokens");
    block.link(B::seen, seen_);
    blocks::Slots slots(file_, block, "tokens");
    fill_pair(slots, B::up, B::up_bias, "proj.0", {inner, width});
    fill_pair(slots, B::down, B::down_bias, "proj.2", {context_, inner});
    fill_pair(slots, B::norm, B::norm_bias, "proj.3", {context_});
    graph_.output("tokens", block[B::out]);
    tell(true, width, 0);
  }

  void add_resampler() {
    using E = IpAdapterEnter;
    using F = IpAdapterFinish;
    const std::int64_t tokens = file_.size(kProjection + "latents", 1),
                       inner = file_.size(kProjection + "latents", 2),
                       width = file_.size(kProjection + "proj_in.weight", 1);
    Block enter = graph_.add<E>("enter");
    enter.link(E::seen, seen_);
    blocks::Slots first(file_, enter, "enter");
    fill_pair(first, E::proj, E::proj_bias, "proj_in", {inner, width});
    first.fill(E::learnt, kProjection + "latents", {1, tokens, inner});
    Source latents = enter[E::latents];
    const int layers = blocks::layer_count(file_, kProjection + "layers.");
    for (int i = 0; i < layers; ++i) latents = add_layer(i, inner, enter[E::states], latents);
    Block finish = graph_.add<F>("finish");
    finish.link(F::latents, latents);
    blocks::Slots last(file_, finish, "finish");
    fill_pair(last, F::proj, F::proj_bias, "proj_out", {context_, inner});
    fill_pair(last, F::norm, F::norm_bias, "norm_out", {context_});
    graph_.output("tokens", finish[F::out]);
    tell(true, width, tokens);
  }

  Source add_layer(int index, std::int64_t inner, const Source& states, const Source& latents) {
    using B = IpAdapterLayer;
    const std::string number = std::to_string(index), path = "layer." + number,
                      attention = "layers." + number + ".0.", mlp = "layers." + number + ".1.";
    const std::int64_t asked = file_.size(kProjection + attention + "to_q.weight", 0),
                       raised = file_.size(kProjection + mlp + "1.weight", 0);
    if (asked % kResamplerHead != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT, file_.path() + ": queries of " + std::to_string(asked) +
                                               " numbers do not divide into heads of " +
                                               std::to_string(kResamplerHead) +
                                               ". The file is damaged.");
    Block block = graph_.add<B>(path);
    block.link(B::states, states).link(B::latents, latents).set(B::heads, asked / kResamplerHead);
    blocks::Slots slots(file_, block, path);
    fill_pair(slots, B::norm1, B::norm1_bias, attention + "norm1", {inner});
    fill_pair(slots, B::norm2, B::norm2_bias, attention + "norm2", {inner});
    slots.fill(B::q, kProjection + attention + "to_q.weight", {asked, inner});
    slots.fill(B::kv, kProjection + attention + "to_kv.weight", {2 * asked, inner});
    slots.fill(B::proj, kProjection + attention + "to_out.weight", {inner, asked});
    fill_pair(slots, B::norm3, B::norm3_bias, mlp + "0", {inner});
    slots.fill(B::up, kProjection + mlp + "1.weight", {raised, inner});
    slots.fill(B::down, kProjection + mlp + "3.weight", {inner, raised});
    return block[B::out];
  }

  const Checkpoint& file_;
  Blocks& graph_;
  const std::int64_t context_;
  const Source seen_;
};

}  // namespace

void IpAdapterTokens::execute(Context& ctx) {
  const Tensor x = ops::cast(ctx, ctx[seen], ctx.compute());
  const Tensor made = blocks::wide_linear(ctx, x, ctx[proj], ctx[proj_bias]);
  const std::int64_t width = ctx[norm].size(0);
  ctx[out] = wide_layer_norm(ctx, made.reshape({x.size(0), made.size(1) / width, width}), ctx[norm],
                             ctx[norm_bias], ctx[eps]);
}

void IpAdapterMlp::execute(Context& ctx) {
  const Tensor x = ops::cast(ctx, ctx[seen], ctx.compute());
  const Tensor raised = ops::linear(ctx, x, ctx[up], ctx[up_bias], HEDDLE_ACT_GELU);
  ctx[out] = wide_layer_norm(ctx, blocks::wide_linear(ctx, raised, ctx[down], ctx[down_bias]),
                             ctx[norm], ctx[norm_bias], ctx[eps]);
}

void IpAdapterEnter::execute(Context& ctx) {
  const Tensor x = ops::cast(ctx, ctx[seen], ctx.compute()), table = ctx[learnt];
  ctx[states] = blocks::wide_linear(ctx, x, ctx[proj], ctx[proj_bias]);
  const Tensor all = ctx.make({x.size(0), table.size(1), table.size(2)}, HEDDLE_F32);
  for (std::int64_t item = 0; item < x.size(0); ++item)
    ops::copy_into(ctx, table, all.slice(0, item, item + 1));
  ctx[latents] = all;
}

void IpAdapterLayer::execute(Context& ctx) {
  const Tensor before = ctx[latents], given = ctx[states];
  const std::int64_t count = ctx[heads], states_length = given.size(1),
                     length = states_length + before.size(1);
  const Tensor own = ops::layer_norm(ctx, before, ctx[norm2], ctx[norm2_bias], ctx[eps]);
  const Tensor both = ctx.make({given.size(0), length, given.size(2)});
  ops::copy_into(ctx, ops::layer_norm(ctx, given, ctx[norm1], ctx[norm1_bias], ctx[eps]),
                 both.slice(1, 0, states_length));
  ops::copy_into(ctx, own, both.slice(1, states_length, length));
  const Tensor asked = blocks::wide_linear(ctx, own, ctx[q], {}),
               told = blocks::wide_linear(ctx, both, ctx[kv], {});
  const std::int64_t width = asked.size(2);
  const auto split = [&](const Tensor& x) { return blocks::split_heads(x, count); };
  const Tensor attended = blocks::join_heads(ops::attention(
      ctx, split(asked), split(told.slice(2, 0, width)), split(told.slice(2, width, 2 * width)), {},
      1 / std::sqrt(double(width / count))));
  const Tensor middle = blocks::wide_linear(ctx, attended, ctx[proj], {}, HEDDLE_ACT_NONE, before);
  const Tensor inner = ops::layer_norm(ctx, middle, ctx[norm3], ctx[norm3_bias], ctx[eps]);
  const Tensor raised = ops::linear(ctx, inner, ctx[up], {}, HEDDLE_ACT_GELU);
  ctx[out] = blocks::wide_linear(ctx, raised, ctx[down], {}, HEDDLE_ACT_NONE, middle);
}

void IpAdapterFinish::execute(Context& ctx) {
  const Tensor x = ops::cast(ctx, ctx[latents], ctx.compute());
  ctx[out] = wide_layer_norm(ctx, blocks::wide_linear(ctx, x, ctx[proj], ctx[proj_bias]), ctx[norm],
                             ctx[norm_bias], ctx[eps]);
}

int IpAdapter::match(const Checkpoint& file, const Value&) {
  return file.has(kKeys) &&
                 (reads_faces(file) || file.has(kProjection + "latents") ||
                  file.has(kProjection + "proj.0.weight") || file.has(kProjection + "proj.weight"))
             ? 100
             : 0;
}

void IpAdapter::build(const Checkpoint& file, const Value&, Blocks& graph) {
  if (reads_faces(file))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() +
                    ": this is an IP-Adapter of FaceID, which reads what InsightFace's recognition "
                    "makes of a face, and heddle has no such model. Take one that sees faces by "
                    "CLIP: ip-adapter-plus-face_sd15, ip-adapter-full-face_sd15 or "
                    "ip-adapter-plus-face_sdxl_vit-h.");
  IpAdapterBuilder(file, graph).run();
}

}  // namespace heddle::encoders
