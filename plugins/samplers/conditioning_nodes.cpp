#include "conditioning_nodes.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "picture_embeddings.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

// Every entry of the list, changed.
template <class F>
Value each(const Value& list, F&& change) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) entries.push_back(change(list.item(i)));
  return list_of(entries);
}

Value with_number(const Value& list, const char* key, double number) {
  return each(list,
              [&](const Value& entry) { return Record(entry).set(key, value_of(number)).value(); });
}

Tensor zeros_like(Context& ctx, const Tensor& tensor) {
  const Tensor zeros = ctx.make_host(tensor.shape(), HEDDLE_F32);
  std::fill_n(zeros.data<float>(), zeros.count(), 0.0f);
  return zeros;
}

Tensor text_of(const Value& entry) {
  if (entry.has("cross_attn")) return entry.field("cross_attn").as<Tensor>();
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "a conditioning without 'cross_attn' came in. Link a text encoder's output.");
}

Tensor joined(Context& ctx, const Tensor& a, const Tensor& b) {
  if (a.rank() != 3 || b.rank() != 3 || a.size(0) != b.size(0) || a.size(2) != b.size(2))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the two conditionings have " + std::to_string(a.size(0)) + " and " +
                    std::to_string(b.size(0)) + " rows of width " + std::to_string(a.size(-1)) +
                    " and " + std::to_string(b.size(-1)) +
                    "; they have to agree. Encode both with the same CLIP.");
  Shape shape = a.shape();
  shape[1] += b.size(1);
  const Tensor whole = ctx.make(shape, a.dtype());
  ops::copy_into(ctx, a, whole.slice(1, 0, a.size(1)));
  ops::copy_into(ctx, b, whole.slice(1, a.size(1), shape[1]));
  return whole;
}

// The first entry of what is linked to `input`.
Value first_of(Context& ctx, const Value& list, const char* input) {
  if (list.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string(input) + " is an empty list. Link a text encoder's output.");
  if (list.count() > 1)
    ctx.warn(std::string(input) + " has " + std::to_string(list.count()) +
             " entries; only the first is used.");
  return list.item(0);
}

// As many tokens as `like` has: the rest is cut off, or zeros come behind.
Tensor with_tokens_of(Context& ctx, const Tensor& text, const Tensor& like) {
  if (text.rank() != 3 || like.rank() != 3 || text.size(2) != like.size(2) ||
      (text.size(0) != like.size(0) && text.size(0) != 1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the two conditionings have " + std::to_string(like.size(0)) + " and " +
                    std::to_string(text.size(0)) + " rows of width " +
                    std::to_string(like.size(-1)) + " and " + std::to_string(text.size(-1)) +
                    "; they have to agree. Encode both with the same CLIP.");
  if (text.shape() == like.shape()) return text;
  const Tensor whole = ctx.make(like.shape(), text.dtype());
  const std::int64_t tokens = std::min(text.size(1), like.size(1));
  if (tokens < like.size(1)) ops::fill(ctx, whole, 0.0);
  for (std::int64_t row = 0; row < like.size(0); ++row) {
    const std::int64_t source = text.size(0) == 1 ? 0 : row;
    ops::copy_into(ctx, text.slice(0, source, source + 1).slice(1, 0, tokens),
                   whole.slice(0, row, row + 1).slice(1, 0, tokens));
  }
  return whole;
}

// An entry, or what is known of it, with one more picture.
Value with_picture(const Value& entry, const Value& embeds, double strength, double noise) {
  std::vector<Value> pictures;
  const Value before = entry.field(kPictureEmbeddings);
  for (std::uint32_t k = 0; k < before.count(); ++k) pictures.push_back(before.item(k));
  pictures.push_back(Record()
                         .set("embeds", embeds)
                         .set("strength", value_of(strength))
                         .set("noise_augmentation", value_of(noise))
                         .value());
  return Record(entry).set(kPictureEmbeddings, list_of(pictures)).value();
}

}  // namespace

void FluxGuidance::execute(Context& ctx) {
  const Value number = value_of(ctx[guidance]);
  ctx[out] = each(ctx[conditioning], [&](const Value& entry) {
    Record told(entry);
    told.set("guidance", number);
    if (entry.has("unguided")) told.set("unguided", value_of(false));
    return told.value();
  });
}

void FluxGuidance::infer(Infer& question) {
  std::vector<EntryShapes> entries = entry_shapes(question, conditioning);
  for (EntryShapes& entry : entries)
    if (entry.scope.has("unguided"))
      entry.scope = Record(entry.scope).set("unguided", value_of(false)).value();
  infer_entries(question, out, entries);
  question.shares(out);
}

void ConditioningZeroOut::execute(Context& ctx) {
  ctx[out] = each(ctx[conditioning], [&](const Value& entry) {
    Record zeroed(entry);
    for (const char* key : {"cross_attn", "pooled_output"})
      if (entry.has(key)) zeroed.set(key, value_of(zeros_like(ctx, entry.field(key).as<Tensor>())));
    return zeroed.value();
  });
}

void ConditioningZeroOut::infer(Infer& question) {
  std::vector<EntryShapes> entries = entry_shapes(question, conditioning);
  for (EntryShapes& entry : entries) {
    entry.text.dtype = HEDDLE_F32;
    if (entry.pooled) entry.pooled->dtype = HEDDLE_F32;
  }
  infer_entries(question, out, entries);
}

void ConditioningCombine::execute(Context& ctx) {
  const Value a = ctx[first], b = ctx[second];
  std::vector<Value> entries;
  for (const Value& list : {a, b})
    for (std::uint32_t i = 0; i < list.count(); ++i) entries.push_back(list.item(i));
  ctx[out] = list_of(entries);
}

void ConditioningCombine::infer(Infer& question) {
  std::vector<EntryShapes> entries = entry_shapes(question, first);
  const std::vector<EntryShapes> more = entry_shapes(question, second);
  if (entries.empty() || more.empty()) return;
  entries.insert(entries.end(), more.begin(), more.end());
  infer_entries(question, out, entries);
  question.shares(out);
}

void ConditioningConcat::execute(Context& ctx) {
  const Tensor tail = text_of(first_of(ctx, ctx[from], "conditioning_from"));
  ctx[out] = each(ctx[to], [&](const Value& entry) {
    return Record(entry).set("cross_attn", value_of(joined(ctx, text_of(entry), tail))).value();
  });
}

void ConditioningConcat::infer(Infer& question) {
  std::vector<EntryShapes> entries = entry_shapes(question, to);
  const std::vector<EntryShapes> more = entry_shapes(question, from);
  if (more.empty() || more.front().text.rank != 3) return;
  for (EntryShapes& entry : entries) {
    if (entry.text.rank != 3) return;
    entry.text.shape[1] += more.front().text.shape[1];
  }
  infer_entries(question, out, entries);
}

void ConditioningAverage::execute(Context& ctx) {
  const Value other = first_of(ctx, ctx[from], "conditioning_from");
  const double share = ctx[strength];
  const auto mixed = [&](const Tensor& a, const Tensor& b) {
    return value_of(ops::combine(ctx, {{share, a}, {1.0 - share, b}}));
  };
  ctx[out] = each(ctx[to], [&](const Value& entry) {
    const Tensor text = text_of(entry);
    Record changed(entry);
    changed.set("cross_attn", mixed(text, with_tokens_of(ctx, text_of(other), text)));
    if (other.has("pooled_output")) {
      const Value pooled = other.field("pooled_output");
      const Value own = entry.has("pooled_output") ? entry.field("pooled_output") : pooled;
      changed.set("pooled_output", mixed(own.as<Tensor>(), pooled.as<Tensor>()));
    }
    return changed.value();
  });
}

void ConditioningAverage::infer(Infer& question) {
  std::vector<EntryShapes> entries = entry_shapes(question, to);
  const std::vector<EntryShapes> other = entry_shapes(question, from);
  if (other.empty()) return;
  for (EntryShapes& entry : entries) {
    if (entry.text.rank != 3) return;
    if (!entry.pooled) entry.pooled = other.front().pooled;
  }
  infer_entries(question, out, entries);
}

void ConditioningSetAreaStrength::execute(Context& ctx) {
  ctx[out] = with_number(ctx[conditioning], "strength", ctx[strength]);
}

void ConditioningSetAreaStrength::infer(Infer& question) {
  std::vector<EntryShapes> entries = entry_shapes(question, conditioning);
  const std::optional<double> by = question[strength];
  for (EntryShapes& entry : entries)
    if (by) entry.scope = Record(entry.scope).set("strength", value_of(*by)).value();
  infer_entries(question, out, entries);
  question.shares(out);
}

void unCLIPConditioning::execute(Context& ctx) {
  const double by = ctx[strength], noise = ctx[noise_augmentation];
  const Value embeds = ctx[clip_vision_output].field("image_embeds");
  if (!embeds)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "clip_vision_output: the tower that saw this has no projected output, as SigLIP's "
                "have none. Take a vision tower of CLIP with its projection.");
  ctx[out] = by == 0 ? ctx[conditioning] : each(ctx[conditioning], [&](const Value& entry) {
    return with_picture(entry, embeds, by, noise);
  });
}

void unCLIPConditioning::infer(Infer& question) {
  const auto embeds = question.tensor(clip_vision_output, "image_embeds");
  const auto by = question[strength], noise = question[noise_augmentation];
  if (!embeds || !by || !noise) return;
  std::vector<EntryShapes> entries = entry_shapes(question, conditioning);
  if (*by != 0)
    for (EntryShapes& entry : entries)
      entry.scope = with_picture(entry.scope, told_info(*embeds), *by, *noise);
  infer_entries(question, out, entries);
  question.shares(out);
}

void ConditioningMultiply::execute(Context& ctx) {
  const double factor = ctx[multiplier];
  ctx[out] = each(ctx[conditioning], [&](const Value& entry) {
    Record changed(entry);
    for (const char* key : {"cross_attn", "pooled_output"})
      if (entry.has(key))
        changed.set(key, value_of(ops::combine(ctx, {{factor, entry.field(key).as<Tensor>()}})));
    return changed.value();
  });
}

void ConditioningMultiply::infer(Infer& question) {
  infer_entries(question, out, entry_shapes(question, conditioning));
}

}  // namespace heddle::samplers
