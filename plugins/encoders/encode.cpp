#include "encode.h"

#include <algorithm>
#include <set>

#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "clip_hooks.h"
#include "detection_texts.h"
#include "joined_texts.h"
#include "picture_inputs.h"
#include "projected_states.h"
#include "tokenizer/prompt_weights.h"

namespace heddle::encoders {
namespace {

struct Encoded {
  Tensor hidden;  // (1, tokens, width) f32; empty where nobody wants it
  Tensor pooled;  // (1, width) f32; empty for encoders without one
};

Tensor f32(Context& ctx, const Tensor& tensor) {
  return tensor.dtype() == HEDDLE_F32 ? tensor : ops::cast(ctx, tensor, HEDDLE_F32);
}

// Rows of one length.
Tensor ids_of(Context& ctx, const std::vector<const Window*>& rows) {
  const Tensor ids = ctx.make_host(
      {std::int64_t(rows.size()), std::int64_t(rows.front()->ids.size())}, HEDDLE_I32);
  std::int32_t* to = ids.data<std::int32_t>();
  for (const Window* window : rows) to = std::copy(window->ids.begin(), window->ids.end(), to);
  return ids;
}

Record inputs_of(Context& ctx, const TextEncoder& encoder, const Windows& windows,
                 const RowBatch& batch) {
  std::vector<const Window*> rows;
  for (std::int64_t row = batch.begin; row < batch.end; ++row)
    rows.push_back(&windows.rows[std::size_t(row)]);
  if (batch.with_empty) rows.push_back(&windows.empty);
  const Tensor ids = ids_of(ctx, rows);
  Record inputs;
  if (has_vectors(windows)) {
    const Tensor vectors = ctx.make_host(
        {batch.rows(), windows.length(), windows.embeddings->reader().width}, HEDDLE_F32);
    const Tensor is_word = ctx.make_host({batch.rows(), windows.length(), 1}, HEDDLE_F32);
    windows.embeddings->write(ids.data<std::int32_t>(), batch.rows() * windows.length(),
                              vectors.data<float>(), is_word.data<float>());
    inputs.set("vectors", value_of(vectors)).set("is_word", value_of(is_word));
  }
  inputs.set("ids", value_of(ids));
  if (model_takes(encoder.model(), "unpadded")) {
    const Tensor unpadded = ctx.make_host({windows.unpadded}, HEDDLE_I32);
    std::fill_n(unpadded.data<std::int32_t>(), windows.unpadded, 0);
    inputs.set("unpadded", value_of(unpadded));
  }
  if (model_takes(encoder.model(), "eos")) {
    const std::vector<std::int32_t> ends = encoder.ends(rows);
    const Tensor eos = ctx.make_host({batch.rows()}, HEDDLE_I32);
    std::copy(ends.begin(), ends.end(), eos.data<std::int32_t>());
    inputs.set("eos", value_of(eos));
  }
  return inputs;
}

Tensor hidden_of(Context& ctx, const EncoderUse& use, const Value& outputs) {
  const Value settings = model_settings(use.encoder.model());
  const std::int64_t layers = settings.get<std::int64_t>("layers", 0);
  // As ComfyUI: a number beyond the encoder's layers means the last.
  const bool last = -use.stop_at_layer > layers;
  if (use.is_joined() && use.pooled_output && !last) {
    const std::string layer = "layer." + std::to_string(layers + 1 + use.stop_at_layer);
    return f32(ctx, outputs.field(layer.c_str()).as<Tensor>());
  }
  return f32(ctx, outputs.field("last_hidden").as<Tensor>());
}

// ComfyUI's weights: token by token, away from or towards what an empty prompt gives. A weight of
// 1 leaves the token as it is.
Tensor weigh(Context& ctx, const Tensor& hidden, const Tensor& empty, const Tensor& weights) {
  const Tensor rest = ops::scale_clamp(ctx, weights, {-1.0, 1.0, -1e30, 1e30});
  return ops::add(ctx, ops::mul(ctx, hidden, weights), ops::mul(ctx, empty, rest));
}

// Of a batch's rows of the prompt; `empty` is what an empty prompt gives.
Tensor weigh_rows(Context& ctx, const Tensor& hidden, const Tensor& empty, const Windows& windows,
                  const RowBatch& batch) {
  const std::int64_t count = batch.end - batch.begin;
  std::vector<float> weights(std::size_t(count * windows.length()));
  float* to = weights.data();
  for (std::int64_t row = batch.begin; row < batch.end; ++row)
    to = windows.rows[std::size_t(row)].write_weights(to);
  return weigh(ctx, hidden, empty,
               ctx.upload({count, windows.length(), 1}, HEDDLE_F32, weights.data()));
}

// Until what was enqueued is done: what a batch takes is given back before the next begins, and a
// run that is cancelled has no queue of them before it.
void wait_for(Context& ctx, const Tensor& hidden) {
  ctx.read<float>(hidden.slice(0, 0, 1).slice(1, 0, 1).slice(2, 0, 1));
  if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
}

// CLIP-G's is projected, where it is joined with CLIP-L's, which is not.
Tensor pooled_of(Context& ctx, const EncoderUse& use, const Value& outputs) {
  const bool is_projected =
      use.is_joined() && use.encoder.name() == "clip_g" && outputs.has("projected");
  return f32(ctx, outputs.field(is_projected ? "projected" : "pooled").as<Tensor>()).slice(0, 0, 1);
}

// The states (rows, tokens, width) that are not left out, without gaps.
Tensor kept_of(Context& ctx, const Tensor& states, const Windows& windows) {
  const Tensor kept = ctx.make({states.size(0), windows.kept(), states.size(2)}, states.dtype());
  std::int64_t to = 0;
  for (const auto& [begin, end] : windows.kept_parts()) {
    ops::copy_into(ctx, states.slice(1, begin, end), kept.slice(1, to, to + end - begin));
    to += end - begin;
  }
  return kept;
}

// States (rows, tokens, width) f32 cut or completed by zeros to so many tokens: masked tokens have
// states of zeros.
Tensor with_tokens(Context& ctx, const Tensor& states, std::int64_t tokens) {
  const std::int64_t there = std::min(states.size(1), tokens);
  if (there == tokens) return states.slice(1, 0, tokens);
  const Tensor whole = ctx.make({states.size(0), tokens, states.size(2)}, HEDDLE_F32);
  ops::fill(ctx, whole.slice(1, there, tokens), 0);
  ops::copy_into(ctx, states.slice(1, 0, there), whole.slice(1, 0, there));
  return whole;
}

// What an empty prompt gives that is asked by itself, completed to the prompt's tokens.
Tensor empty_states(Context& ctx, const EncoderUse& use, const Windows& windows) {
  Record inputs;
  inputs.set("ids", value_of(ids_of(ctx, {&windows.empty})));
  const Value outputs = call_model(ctx, use.encoder.model(), inputs.value());
  return with_tokens(ctx, hidden_of(ctx, use, outputs), windows.length());
}

Encoded encode(Context& ctx, const Asked& asked, const Prompt& prompt) {
  const EncoderUse& use = asked.use;
  const TextEncoder& encoder = use.encoder;
  const Windows& windows = asked.windows;
  if (windows.cut_at != 0)
    ctx.warn("the prompt has more than the " + std::to_string(windows.cut_at) + " tokens that " +
             encoder.name() + " of this model reads; the rest is left out.");
  Encoded result;
  Tensor empty, whole;
  if (use.cross_attn && windows.empty_apart()) empty = empty_states(ctx, use, windows);
  const std::int64_t count = windows.count(), length = windows.length(), kept = windows.kept();
  for (const RowBatch& batch : batches_of(windows, !use.cross_attn)) {
    Record inputs = inputs_of(ctx, encoder, windows, batch);
    if (!windows.pictures.empty()) show_pictures(ctx, encoder, prompt, windows, inputs);
    if (windows.shown) show_states(ctx, encoder, prompt.shown, windows, inputs);
    const Value outputs = call_model(ctx, encoder.model(), inputs.value());
    if (batch.begin == 0 && outputs.has("pooled")) result.pooled = pooled_of(ctx, use, outputs);
    if (!use.cross_attn) break;
    const Tensor all = hidden_of(ctx, use, outputs);
    const std::int64_t here = batch.end - batch.begin, width = all.size(2);
    if (batch.with_empty) empty = all.slice(0, here, here + 1);
    Tensor hidden = all.slice(0, 0, here);
    if (windows.weighted()) hidden = weigh_rows(ctx, hidden, empty, windows, batch);
    if (here == count) {
      whole = hidden;
    } else {
      if (!whole) whole = ctx.make({count, length, width}, HEDDLE_F32);
      ops::copy_into(ctx, hidden, whole.slice(0, batch.begin, batch.end));
      ctx.progress(double(batch.end) / double(count));
      wait_for(ctx, hidden);
    }
  }
  if (whole && kept < length) whole = kept_of(ctx, whole, windows);
  if (const Value projection = encoder.projection(); whole && projection)
    whole = projected_states(ctx, projection, whole);
  if (whole && windows.completed > 0) whole = with_tokens(ctx, whole, windows.completed);
  if (whole) result.hidden = whole.reshape({1, count * windows.told(), whole.size(2)});
  return result;
}

// Of those that no encoder has vectors for, and of files that one of them cannot read.
void warn_of_embeddings(Context& ctx, const std::vector<Asked>& all, const Prompt& prompt) {
  constexpr std::size_t kMostShown = 8;
  std::set<std::string> names;
  for (const Asked& asked : all) {
    text::Work work;
    text::named_embeddings(prompt.of(asked.use.encoder.name()), text::WeightSyntax::kParsed, work,
                           [&](std::string_view name) {
                             const auto has = [&](const Asked& each) {
                               return each.windows.embeddings &&
                                      each.windows.embeddings->has(std::string(name));
                             };
                             if (std::ranges::none_of(all, has)) names.emplace(name.substr(0, 100));
                           });
    if (asked.windows.embeddings)
      for (const std::string& reason : asked.windows.embeddings->unfit())
        ctx.warn("an embedding is left out of what " + asked.use.encoder.name() +
                 " reads: " + reason);
  }
  if (names.empty()) return;
  std::string listed;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (++shown > kMostShown) break;
    listed += (shown > 1 ? ", '" : "'") + name + "'";
  }
  if (names.size() > kMostShown)
    listed += " and " + std::to_string(names.size() - kMostShown) + " more";
  ctx.warn("the prompt names embeddings that cannot be read: " + listed +
           ". These words are left out; the rest is drawn.");
}

Record encode_by(Context& ctx, const std::vector<EncoderUse>& uses, const Prompt& prompt,
                 bool warns) {
  Record entry;
  JoinedTexts joined(uses);
  const std::vector<Asked> all = ask(uses, prompt, &ctx);
  if (warns) warn_of_embeddings(ctx, all, prompt);
  for (const Asked& asked : all) {
    const EncoderUse& use = asked.use;
    const Encoded encoded = encode(ctx, asked, prompt);
    if (use.is_joined()) {
      joined.add(use.encoder.name(),
                 {encoded.hidden.shape(), encoded.pooled ? encoded.pooled.shape() : Shape(),
                  encoded.hidden, encoded.pooled});
      continue;
    }
    if (use.cross_attn) entry.set(use.states_as, value_of(encoded.hidden));
    if (const Value spans = spans_of(asked.windows)) entry.set("image_spans", spans);
    if (const Value slots = slots_of(asked.windows)) entry.set("image_slots", slots);
    if (use.pooled_output) entry.set("pooled_output", value_of(encoded.pooled));
  }
  return are_joined(uses) ? joined.join(ctx) : entry;
}

// Of each thing that the prompt names its states without padding; the first one's are the entry's.
Record encode_things(Context& ctx, const std::vector<EncoderUse>& uses, const Prompt& prompt,
                     bool warns) {
  Record first;
  std::vector<Value> things;
  for (const NamedThing& thing : named_things(prompt.text)) {
    const Prompt own{.text = thing.text, .by_encoder = {}};
    Record entry = encode_by(ctx, uses, own, warns);
    const Tensor states = entry.value().get<Tensor>("cross_attn", {});
    const auto rows = token_rows(uses.front().encoder, own, &ctx);
    std::int64_t count = 0, to = 0;
    for (const auto& [begin, end] : rows) count += end - begin;
    const Tensor kept = ctx.make({1, count, states.size(2)}, HEDDLE_F32);
    for (const auto& [begin, end] : rows) {
      ops::copy_into(ctx, states.slice(1, begin, end), kept.slice(1, to, to + end - begin));
      to += end - begin;
    }
    entry.set("cross_attn", value_of(kept));
    if (things.empty()) first = entry;
    things.push_back(Record()
                         .set("cross_attn", value_of(kept))
                         .set("max_detections", value_of(thing.most))
                         .value());
  }
  first.set("sam3_prompts", list_of(things));
  return first;
}

}  // namespace

Value encode_prompt(Context& ctx, const Value& clip, const Prompt& prompt) {
  std::vector<Value> entries;
  for (const HookedClip& hooked : hooked_clips(clip)) {
    const std::vector<EncoderUse> uses = encoders_of(hooked.clip);
    Record entry = finds_things(hooked.clip) ? encode_things(ctx, uses, prompt, entries.empty())
                                             : encode_by(ctx, uses, prompt, entries.empty());
    for (const auto& [key, value] : fields_of(clip, hooked)) entry.set(key, value);
    entries.push_back(entry.value());
  }
  return list_of(entries);
}

}  // namespace heddle::encoders
