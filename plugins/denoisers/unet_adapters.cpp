#include "unet_adapters.h"

#include <algorithm>
#include <cmath>

#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"
#include "unet_control.h"
#include "unet_filler.h"

namespace heddle::denoisers {
namespace {

Tensor attend_to(Context& ctx, const Tensor& asked, const Tensor& keys, const Tensor& values,
                 std::int64_t heads) {
  const auto split = [&](const Tensor& x) { return blocks::split_heads(x, heads); };
  const double scale = 1 / std::sqrt(double(asked.size(2) / heads));
  return blocks::join_heads(
      ops::attention(ctx, split(asked), split(keys), split(values), {}, scale));
}

Tensor attend_to(Context& ctx, const Tensor& asked, const Tensor& kv, std::int64_t heads) {
  const std::int64_t width = asked.size(2);
  return attend_to(ctx, asked, kv.slice(2, 0, width), kv.slice(2, width, 2 * width), heads);
}

// The blocks of a stage, by its transformers.
int blocks_in(const std::vector<UnetStage>& stages, char letter, std::string* letters) {
  int count = 0;
  for (const UnetStage& stage : stages)
    for (const UnetPart& part : stage)
      if (part.kind == UnetPart::Kind::transformer) {
        count += part.depth;
        if (letters != nullptr) *letters += letter;
      }
  return count;
}

// By what keys, values, their means, and what is attended to are multiplied.
struct AdapterFactors {
  double keys = 1, values = 1, means = 1, attended = 1;
};

AdapterFactors factors_of(const std::string& scaling, double weight, std::int64_t width) {
  constexpr double kFullWidth = 1280.0;
  const double penalised = weight * double(width) / kFullWidth;
  if (scaling == "K+V") return {.keys = weight, .values = weight};
  if (scaling == "K+V w/ C penalty") return {.keys = penalised, .values = penalised};
  if (scaling == "K+mean(V) w/ C penalty") return {.keys = penalised, .means = penalised};
  return {.attended = weight};
}

}  // namespace

void UnetSelfPart::execute(Context& ctx) {
  const Tensor x = ctx[tokens];
  const std::int64_t width = x.size(2);
  Tensor made;
  if (ctx.has(attended)) {
    made = ctx[attended];
  } else {
    const Tensor before = ops::layer_norm(ctx, x, ctx[norm], ctx[norm_bias], ctx[eps]),
                 own = ops::linear(ctx, before, ctx[qkv], {});
    const Tensor q = own.slice(2, 0, width), k = own.slice(2, width, 2 * width),
                 v = own.slice(2, 2 * width, 3 * width);
    const std::optional<TokenMerge> merge = merge_at(ctx, x.size(1));
    made = merge ? attend_merged(ctx, before, q, k, v, ctx[heads], *merge)
                 : attend_to(ctx, q, k, v, ctx[heads]);
  }
  ctx[out] = ops::linear(ctx, made, ctx[proj], ctx[proj_bias], HEDDLE_ACT_NONE, x);
}

void UnetTextPart::execute(Context& ctx) {
  const Tensor normed = ops::layer_norm(ctx, ctx[tokens], ctx[norm], ctx[norm_bias], ctx[eps]);
  const Tensor questions = ops::linear(ctx, normed, ctx[q], {});
  ctx[asked] = questions;
  ctx[attended] = attend_to(ctx, questions, ctx[kv], ctx[heads]);
}

void UnetAdapterKv::execute(Context& ctx) {
  const Tensor made = ops::linear(ctx, ops::cast(ctx, ctx[tokens], ctx.compute()), ctx[kv], {});
  const std::int64_t rows = ctx[x].size(0), length = made.size(1), width = made.size(2) / 2,
                     count = ctx[each];
  Tensor keys_made = made.slice(2, 0, width), values_made = made.slice(2, width, 2 * width);
  if (ctx[keys] != 1) keys_made = ops::combine(ctx, {{ctx[keys], keys_made}});
  if (ctx[values] != 1) values_made = ops::combine(ctx, {{ctx[values], values_made}});
  if (ctx[means] != 1) {
    const std::int64_t pictures = made.size(0) * length / count;
    const Tensor apart = ops::contiguous(ctx, values_made).reshape({pictures, count, 1, width});
    const Tensor mean = mean_of_pixels(ctx, apart).reshape({pictures, 1, 1, width});
    values_made = ops::add(ctx, apart, ops::combine(ctx, {{ctx[means] - 1, mean}}))
                      .reshape({made.size(0), length, width});
  }
  const Tensor all = ctx.make({rows, length, 2 * width});
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t from = made.size(0) == 1 ? 0 : row;
    const Tensor to = all.slice(0, row, row + 1);
    ops::copy_into(ctx, keys_made.slice(0, from, from + 1), to.slice(2, 0, width));
    ops::copy_into(ctx, values_made.slice(0, from, from + 1), to.slice(2, width, 2 * width));
  }
  ctx[out] = all;
}

void UnetAdapterAttention::execute(Context& ctx) {
  Tensor made = attend_to(ctx, ctx[asked], ctx[kv], ctx[heads]);
  if (ctx.has(mask)) made = ops::mul(ctx, made, ctx[mask]);
  ctx[out] = ops::combine(ctx, {{1.0, ctx[attended]}, {ctx[strength], made}});
}

UnetAdapters::UnetAdapters(const Checkpoint& file, const UnetNames& names, const Value& config,
                           Blocks& graph)
    : file_(file), names_(names), graph_(graph) {
  if (!config.is(HEDDLE_KIND_RECORD)) return;
  const Value list = config.field("adapters");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value told = list.item(i);
    Adapter& adapter = adapters_.emplace_back();
    adapter.prefix = told.get<std::string>("prefix", "");
    adapter.file = told.get<std::string>("file", "");
    adapter.path = "adapter." + std::to_string(i);
    adapter.scaling = told.get<std::string>("scaling", "V only");
    adapter.each = told.get<std::int64_t>("each", 1);
    const Value weights = told.field("weights"), sources = told.field("sources");
    for (std::uint32_t k = 0; k < weights.count(); ++k)
      adapter.weights.push_back(weights.item(k).as<double>());
    for (std::uint32_t k = 0; k < sources.count(); ++k)
      adapter.sources.push_back(sources.item(k).as<std::int64_t>());
  }
  // Files number blocks on the way down, then up, then those of the middle.
  up_ = blocks_in(names.inputs(), 'i', nullptr);
  middle_ = up_ + blocks_in(names.outputs(), 'o', nullptr);
}

Source UnetAdapters::input(const std::string& name) {
  const auto found = inputs_.find(name);
  if (found != inputs_.end()) return found->second;
  const auto made = inputs_.emplace(name, Source{}).first;
  made->second = graph_.input(made->first.c_str(), HEDDLE_INPUT_LOOP_INVARIANT |
                                                       HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH);
  return made->second;
}

int UnetAdapters::number_of(const std::string& path) {
  if (path.starts_with("input.")) return down_++;
  return path.starts_with("middle.") ? middle_++ : up_++;
}

Source UnetAdapters::self(const UnetBlockPlace& place) {
  using B = UnetSelfPart;
  const std::string path = place.path + ".self_part";
  Block block = graph_.add<B>(path);
  block.link(B::tokens, place.tokens).set(B::heads, place.heads);
  UnetFiller fill{names_, &place.part, blocks::Slots(file_, block, path)};
  const std::string& at = place.module;
  if (place.attended) {
    block.link(B::attended, *place.attended);
  } else {
    set_merge(block, place.merged, place.x, place.path);
    fill.both(B::norm, B::norm_bias, at + "norm1", {place.width});
    fill.matrix(B::qkv, {at + "attn1.to_q", at + "attn1.to_k", at + "attn1.to_v"},
                {3 * place.width, place.width});
  }
  fill.both(B::proj, B::proj_bias, at + "attn1.to_out.0", {place.width, place.width});
  return block[B::out];
}

Source UnetAdapters::crossed(const UnetBlockPlace& place, const Source& tokens) {
  using B = UnetTextPart;
  const std::string path = place.path + ".text_part";
  Block text = graph_.add<B>(path);
  text.link(B::tokens, tokens).link(B::kv, place.kv).set(B::heads, place.heads);
  UnetFiller fill{names_, &place.part, blocks::Slots(file_, text, path)};
  fill.both(B::norm, B::norm_bias, place.module + "norm2", {place.width});
  fill.matrix(B::q, {place.module + "attn2.to_q"}, {place.width, place.width});
  Source sum = text[B::attended];
  const int number = number_of(place.path);
  for (const Adapter& adapter : adapters_) {
    const auto at = std::size_t(transformer_);
    if (at >= adapter.weights.size() || adapter.weights[at] == 0) continue;
    try {
      sum = added(adapter, place, number, sum, text[B::asked]);
    } catch (const Error& error) {
      throw Error(error.code, "the IP-Adapter " + adapter.file + " does not fit: " + error.what());
    }
  }
  return sum;
}

Source UnetAdapters::added(const Adapter& adapter, const UnetBlockPlace& place, int number,
                           const Source& attended, const Source& asked) {
  const auto at = std::size_t(transformer_);
  const bool is_other = at < adapter.sources.size() && adapter.sources[at] != 0;
  const std::string path = adapter.path + "." + place.path;
  const AdapterFactors factors = factors_of(adapter.scaling, adapter.weights[at], place.width);
  Block kv = graph_.add<UnetAdapterKv>(path + ".kv");
  kv.link(UnetAdapterKv::tokens, input(adapter.path + (is_other ? ".other" : ".tokens")))
      .link(UnetAdapterKv::x, place.x)
      .set(UnetAdapterKv::keys, factors.keys)
      .set(UnetAdapterKv::values, factors.values)
      .set(UnetAdapterKv::means, factors.means)
      .set(UnetAdapterKv::each, adapter.each);
  const std::string module = adapter.prefix + "ip_adapter." + std::to_string(2 * number + 1);
  const std::string keys = module + ".to_k_ip.weight", values = module + ".to_v_ip.weight";
  blocks::Slots(file_, kv, path + ".kv")
      .fill(UnetAdapterKv::kv, {{keys}, {values}}, {2 * place.width, file_.size(keys, 1)});
  Block block = graph_.add<UnetAdapterAttention>(path + ".attention");
  block.link(UnetAdapterAttention::attended, attended)
      .link(UnetAdapterAttention::asked, asked)
      .link(UnetAdapterAttention::kv, kv[UnetAdapterKv::out])
      .link(UnetAdapterAttention::mask,
            input(adapter.path + ".mask." + std::to_string(place.halvings)))
      .set(UnetAdapterAttention::heads, place.heads)
      .set(UnetAdapterAttention::strength, factors.attended);
  return block[UnetAdapterAttention::out];
}

void UnetAdapters::add_settings(const UnetNames& names, std::int64_t context, Blocks& graph) {
  if (context == 0) return;
  std::string letters;
  int count = blocks_in(names.inputs(), 'i', &letters);
  count += blocks_in({names.middle()}, 'm', &letters);
  count += blocks_in(names.outputs(), 'o', &letters);
  graph.setting("adapted_blocks", std::int64_t{count});
  graph.setting("adapted_places", letters);
}

}  // namespace heddle::denoisers
