#include "ip_adapter_nodes.h"

#include "ip_adapter_apply.h"
#include "ip_adapter_embed_nodes.h"
#include "plugins/blocks/entry_shapes.h"

#include <heddle/ops.hpp>

namespace heddle::encoders {
namespace {

template <class Node>
std::string weight_type_of(auto&& read) {
  if constexpr (requires { Node::expand_style; })
    return read(Node::expand_style) ? "strong style and composition" : "style and composition";
  else
    return read(Node::weight_type);
}

std::string simple_type(const std::string& type) {
  if (type == "style transfer") return type;
  return type == "prompt is more important" ? "ease out" : "linear";
}

// What the literals of a node say; `read` gives that of an input.
template <class Node>
void read_numbers(AdapterJob& job, auto&& read) {
  job.weight = read(Node::weight);
  job.start = read(Node::start_at);
  job.end = read(Node::end_at);
  job.type = weight_type_of<Node>(read);
  if constexpr (requires { Node::kTypes; }) job.type = simple_type(job.type);
  if constexpr (requires { Node::weight_composition; })
    job.composition = read(Node::weight_composition);
  if constexpr (requires { Node::combine_embeds; }) job.combine = read(Node::combine_embeds);
  if constexpr (requires { Node::embeds_scaling; }) job.scaling = read(Node::embeds_scaling);
}

template <class Node>
constexpr bool kIsOfItems =
    std::is_same_v<Node, IPAdapterBatch> || std::is_same_v<Node, IPAdapterEmbedsBatch>;

void check_composition(const AdapterJob& job, bool has_composition) {
  if (has_composition && !model_settings(job.model).has("size_numbers"))
    throw Error(HEDDLE_UNSUPPORTED,
                "model: style and composition by two pictures is for SDXL alone, and this model is "
                "another one. Use IPAdapterAdvanced with one of its weight types.");
}

template <class Node>
AdapterJob job_in(Context& ctx) {
  AdapterJob job;
  job.model = ctx[Node::model];
  Value tower;
  if constexpr (requires { Node::clip_vision; })
    if (ctx.has(Node::clip_vision)) tower = ctx[Node::clip_vision];
  read_adapter(job, ctx[Node::ipadapter], tower);
  read_numbers<Node>(job, [&](const auto& input) { return ctx[input]; });
  job.is_of_items = kIsOfItems<Node>;
  if (ctx.has(Node::attn_mask)) job.mask = value_of(ctx[Node::attn_mask]);
  return job;
}

// None: something is not known yet.
template <class Node>
std::optional<AdapterJob> told_job(Infer& question) {
  AdapterJob job;
  job.model = question.part(Node::model, "");
  const auto adapter = question[Node::ipadapter];
  if (!job.model.is(HEDDLE_KIND_MODEL) || !adapter) return {};
  Value tower;
  if constexpr (requires { Node::clip_vision; })
    if (const auto told = question[Node::clip_vision]) tower = *told;
  read_adapter(job, *adapter, tower);
  bool is_known = true;
  read_numbers<Node>(job, [&](const auto& input) {
    const auto told = question[input];
    is_known = is_known && told;
    return told.value_or(std::decay_t<decltype(*told)>());
  });
  job.is_of_items = kIsOfItems<Node>;
  if (const auto mask = question.tensor(Node::attn_mask)) job.mask = blocks::told_info(*mask);
  return is_known ? std::optional(job) : std::nullopt;
}

template <class Node>
constexpr bool kHasComposition = requires {
  Node::image_composition;
};

template <class Node>
void apply_pictures(Context& ctx) {
  const AdapterJob job = job_in<Node>(ctx);
  check_composition(job, kHasComposition<Node>);
  AdapterRows rows{
      .positive = seen_for(ctx, job, ctx[Node::image]), .negative = {}, .composed = {}};
  if constexpr (kHasComposition<Node>)
    rows.composed = seen_for(ctx, job, ctx[Node::image_composition]);
  if constexpr (requires { Node::image_negative; })
    if (ctx.has(Node::image_negative))
      rows.negative = seen_for(ctx, job, ctx[Node::image_negative]);
  if (!rows.negative) rows.negative = unseen_for(ctx, job, rows.positive);
  ctx[Node::out] = adapted(ctx, job, rows);
}

template <class Node>
void tell_pictures(Infer& question) {
  const std::optional<AdapterJob> job = told_job<Node>(question);
  const auto image = question.shape(Node::image);
  if (!job || !image || image->size() != 4) return;
  check_composition(*job, kHasComposition<Node>);
  AdapterRowShapes rows{
      .positive = tell_seen(question, *job, *image), .negative = {}, .composed = {}};
  if constexpr (kHasComposition<Node>) {
    const auto other = question.shape(Node::image_composition);
    if (!other || other->size() != 4) return;
    rows.composed = tell_seen(question, *job, *other);
  }
  if constexpr (requires { Node::image_negative; })
    if (const auto negative = question.shape(Node::image_negative))
      rows.negative = tell_seen(question, *job, *negative);
  if (rows.negative.empty()) rows.negative = tell_unseen(question, *job, rows.positive);
  if (rows.positive.empty() || rows.negative.empty()) return;
  question.known(Node::out, "", tell_adapted(question, *job, rows));
}

template <class Node>
void apply_embeds(Context& ctx) {
  const AdapterJob job = job_in<Node>(ctx);
  AdapterRows rows{.positive = ctx[Node::positive], .negative = {}, .composed = {}};
  rows.negative =
      ctx.has(Node::negative) ? ctx[Node::negative] : unseen_for(ctx, job, rows.positive);
  ctx[Node::out] = adapted(ctx, job, rows);
}

template <class Node>
void tell_embeds(Infer& question) {
  const std::optional<AdapterJob> job = told_job<Node>(question);
  const auto positive = question.shape(Node::positive), negative = question.shape(Node::negative);
  if (!job || !positive) return;
  AdapterRowShapes rows{.positive = *positive, .negative = {}, .composed = {}};
  rows.negative = negative ? *negative : tell_unseen(question, *job, *positive);
  if (rows.negative.empty()) return;
  question.known(Node::out, "", tell_adapted(question, *job, rows));
}

constexpr const Input<Tensor>* kCombined[] = {
    &IPAdapterCombineEmbeds::first, &IPAdapterCombineEmbeds::second, &IPAdapterCombineEmbeds::third,
    &IPAdapterCombineEmbeds::fourth, &IPAdapterCombineEmbeds::fifth};

void check_rows(const Shape& one, const Shape& other) {
  if (one.size() == other.size() && std::equal(one.begin() + 1, one.end(), other.begin() + 1))
    return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "embeddings of different kinds do not combine. Make all of them with the same "
              "IP-Adapter.");
}

}  // namespace

void IPAdapter::execute(Context& ctx) { apply_pictures<IPAdapter>(ctx); }
void IPAdapter::infer(Infer& question) { tell_pictures<IPAdapter>(question); }
void IPAdapterAdvanced::execute(Context& ctx) { apply_pictures<IPAdapterAdvanced>(ctx); }
void IPAdapterAdvanced::infer(Infer& question) { tell_pictures<IPAdapterAdvanced>(question); }
void IPAdapterBatch::execute(Context& ctx) { apply_pictures<IPAdapterBatch>(ctx); }
void IPAdapterBatch::infer(Infer& question) { tell_pictures<IPAdapterBatch>(question); }
void IPAdapterStyleComposition::execute(Context& ctx) {
  apply_pictures<IPAdapterStyleComposition>(ctx);
}
void IPAdapterStyleComposition::infer(Infer& question) {
  tell_pictures<IPAdapterStyleComposition>(question);
}

template <bool kOfItems>
void AppliesEmbeds<kOfItems>::execute(Context& ctx) {
  apply_embeds<AppliesEmbeds>(ctx);
}
template <bool kOfItems>
void AppliesEmbeds<kOfItems>::infer(Infer& question) {
  tell_embeds<AppliesEmbeds>(question);
}
template struct AppliesEmbeds<false>;
template struct AppliesEmbeds<true>;

void IPAdapterEncoder::execute(Context& ctx) {
  AdapterJob job;
  read_adapter(job, ctx[ipadapter], ctx.has(clip_vision) ? ctx[clip_vision] : Value());
  const double factor = ctx[weight];
  const Tensor seen = seen_for(ctx, job, ctx[image], ctx.has(mask) ? ctx[mask] : Tensor());
  ctx[negative] = unseen_for(ctx, job, seen);
  ctx[positive] = factor == 1 ? seen : ops::combine(ctx, {{factor, seen}});
}

void IPAdapterEncoder::infer(Infer& question) {
  const auto adapter = question[ipadapter];
  const auto tower = question[clip_vision];
  const auto shape = question.shape(image);
  if (!adapter || !shape || shape->size() != 4) return;
  AdapterJob job;
  read_adapter(job, *adapter, tower.value_or(Value()));
  const Shape seen = tell_seen(question, job, *shape);
  if (seen.empty()) return;
  const Shape unseen = tell_unseen(question, job, seen);
  question.out(positive, "", HEDDLE_F32, seen);
  question.out(negative, "", HEDDLE_F32, unseen);
}

void IPAdapterCombineEmbeds::execute(Context& ctx) {
  std::vector<Tensor> parts;
  std::int64_t rows = 0;
  for (const Input<Tensor>* input : kCombined) {
    if (!ctx.has(*input)) continue;
    parts.push_back(ctx[*input]);
    check_rows(parts.front().shape(), parts.back().shape());
    rows += parts.back().size(0);
  }
  Shape shape = parts.front().shape();
  shape[0] = rows;
  const Tensor all = ctx.make(shape, HEDDLE_F32);
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    ops::copy_into(ctx, part, all.slice(0, at, at + part.size(0)));
    at += part.size(0);
  }
  ctx[out] = combined(ctx, all, ctx[method]);
}

void IPAdapterCombineEmbeds::infer(Infer& question) {
  const auto how = question[method];
  auto shape = question.shape(first);
  if (!how || !shape) return;
  for (const Input<Tensor>* input : kCombined)
    if (const auto more = question.shape(*input); more && input != &first) {
      check_rows(*shape, *more);
      (*shape)[0] += (*more)[0];
    }
  question.out(out, "", HEDDLE_F32, combined_shape(*shape, *how));
}

}  // namespace heddle::encoders
