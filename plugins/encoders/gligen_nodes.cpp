#include "gligen_nodes.h"

#include <vector>

#include <heddle/model.hpp>

#include "encode.h"
#include "plugins/blocks/entry_shapes.h"

namespace heddle::encoders {
namespace {

constexpr std::int64_t kCell = 8;  // pixels of a side, as ComfyUI rounds boxes whatever the model
constexpr const char* kBoxes = "boxes";

struct PhraseBox {
  Value embeds;  // of the phrase, or what is told of them
  std::int64_t x = 0, y = 0, width = 0, height = 0;
};

void check_phrase(const Value& gligen, std::int64_t given) {
  const Value model = gligen.field("model");
  if (!model.is(HEDDLE_KIND_MODEL))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "gligen_textbox_model: it holds no model. Link a GLIGENLoader.");
  const auto wanted = model_settings(model).get<std::int64_t>("phrase_width", 0);
  if (wanted == given) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "clip: its phrases are " + std::to_string(given) + " wide, the GLIGEN model reads " +
                  std::to_string(wanted) +
                  ". Link the CLIP of the model that it was made for: of gligen_sd14 that of "
                  "Stable Diffusion 1.x.");
}

// An entry, or what is known of it, with one more box. The GLIGEN model that comes last sees all.
Value boxed(const Value& entry, const Value& gligen, const PhraseBox& box) {
  std::vector<Value> boxes;
  const Value before = entry.field("gligen").field(kBoxes);
  for (std::uint32_t i = 0; i < before.count(); ++i) boxes.push_back(before.item(i));
  boxes.push_back(Record()
                      .set("embeds", box.embeds)
                      .set("x", value_of(box.x / kCell))
                      .set("y", value_of(box.y / kCell))
                      .set("width", value_of(box.width / kCell))
                      .set("height", value_of(box.height / kCell))
                      .value());
  const Value told =
      Record().set("model", gligen.field("model")).set(kBoxes, list_of(boxes)).value();
  return Record(entry).set("gligen", told).value();
}

}  // namespace

void GLIGENTextBoxApply::execute(Context& ctx) {
  const Value first = encode_prompt(ctx, ctx[clip], {.text = ctx[text], .by_encoder = {}}).item(0);
  if (!first.has("pooled_output")) check_phrase(ctx[gligen], 0);
  const Tensor embeds = first.field("pooled_output").as<Tensor>();
  check_phrase(ctx[gligen], embeds.size(1));
  const PhraseBox box{value_of(embeds), ctx[x], ctx[y], ctx[width], ctx[height]};
  const Value list = ctx[conditioning];
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    entries.push_back(boxed(list.item(i), ctx[gligen], box));
  ctx[out] = list_of(entries);
}

std::uint64_t GLIGENTextBoxApply::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&text});
}

void GLIGENTextBoxApply::infer(Infer& question) {
  const auto from = question[clip], model = question[gligen];
  const auto phrase = question[text];
  const auto left = question[x], top = question[y], wide = question[width], high = question[height];
  if (!from || !model || !phrase || !left || !top || !wide || !high) return;
  const auto pooled = infer_pooled(question, *from, {.text = *phrase, .by_encoder = {}});
  if (!pooled) return;
  check_phrase(*model, pooled->back());
  const PhraseBox box{blocks::told_info(tensor_info(HEDDLE_F32, *pooled)), *left, *top, *wide,
                      *high};
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, conditioning);
  for (blocks::EntryShapes& entry : entries) entry.scope = boxed(entry.scope, *model, box);
  blocks::infer_entries(question, out, entries);
  question.shares(out);
}

}  // namespace heddle::encoders
