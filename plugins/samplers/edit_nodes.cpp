#include "edit_nodes.h"

#include "latent.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

template <class F>
Value each_changed(const Value& list, F&& change) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    entries.push_back(change(Record(list.item(i)), list.item(i)).value());
  return list_of(entries);
}

Value each_with(const Value& list, const char* key, const Value& value) {
  return each_changed(
      list, [&](Record changed, const Value&) { return std::move(changed.set(key, value)); });
}

constexpr const char* kReferenceMethod = "reference_latents_method";

std::string method_named(const std::string& choice) { return choice == "uxo/uno" ? "uxo" : choice; }

// What is set changes no shape.
template <class In, class Out>
void infer_same(Infer& question, const In& in, const Out& out) {
  infer_entries(question, out, entry_shapes(question, in));
  question.shares(out);
}

// The samples of a LATENT in their units, and nothing else of it.
Value shown_latent(const Value& latent) {
  return Record()
      .set("samples", value_of(samples_of(latent)))
      .set("scaled", value_of(latent.get<bool>("scaled", false)))
      .value();
}

}  // namespace

void FluxDisableGuidance::execute(Context& ctx) {
  ctx[out] = each_with(ctx[conditioning], "unguided", value_of(true));
}

void FluxDisableGuidance::infer(Infer& question) {
  std::vector<EntryShapes> entries = entry_shapes(question, conditioning);
  for (EntryShapes& entry : entries)
    entry.scope = Record(entry.scope).set("unguided", value_of(true)).value();
  infer_entries(question, out, entries);
  question.shares(out);
}

void ReferenceLatent::execute(Context& ctx) {
  const Value list = ctx[conditioning];
  if (!ctx.has(latent)) {
    ctx[out] = list;
    return;
  }
  const Value shown = shown_latent(ctx[latent]);
  ctx[out] = each_changed(list, [&](Record changed, const Value& entry) {
    std::vector<Value> all;
    const Value before = entry.field("reference_latents");
    for (std::uint32_t i = 0; i < before.count(); ++i) all.push_back(before.item(i));
    all.push_back(shown);
    return std::move(changed.set("reference_latents", list_of(all)));
  });
}

void ReferenceLatent::infer(Infer& question) {
  const auto shown = question.tensor(latent, "samples");
  if (!shown) return;
  std::vector<EntryShapes> entries = entry_shapes(question, conditioning);
  for (EntryShapes& entry : entries) entry.references.push_back(*shown);
  infer_entries(question, out, entries);
  question.shares(out);
}

void FluxKontextMultiReferenceLatentMethod::execute(Context& ctx) {
  ctx[out] = each_with(ctx[conditioning], kReferenceMethod,
                       value_of(method_named(ctx[reference_latents_method])));
}

void FluxKontextMultiReferenceLatentMethod::infer(Infer& question) {
  std::vector<EntryShapes> entries = entry_shapes(question, conditioning);
  if (const auto method = question[reference_latents_method])
    for (EntryShapes& entry : entries)
      entry.scope =
          Record(entry.scope).set(kReferenceMethod, value_of(method_named(*method))).value();
  infer_entries(question, out, entries);
  question.shares(out);
}

void LTXVConditioning::execute(Context& ctx) {
  const Value rate = value_of(ctx[frame_rate]);
  ctx[positive] = each_with(ctx[positive_in], "frame_rate", rate);
  ctx[negative] = each_with(ctx[negative_in], "frame_rate", rate);
}

void LTXVConditioning::infer(Infer& question) {
  infer_same(question, positive_in, positive);
  infer_same(question, negative_in, negative);
}

}  // namespace heddle::samplers
