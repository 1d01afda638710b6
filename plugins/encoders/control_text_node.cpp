#include "control_text_node.h"

#include <vector>

#include "encode.h"
#include "plugins/blocks/entry_shapes.h"

namespace heddle::encoders {
namespace {

constexpr const char* kControlText = "cross_attn_controlnet";

}  // namespace

void CLIPTextEncodeControlnet::execute(Context& ctx) {
  const Value first = encode_prompt(ctx, ctx[clip], {.text = ctx[text], .by_encoder = {}}).item(0);
  const Value list = ctx[conditioning];
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    entries.push_back(Record(list.item(i)).set(kControlText, first.field("cross_attn")).value());
  ctx[out] = list_of(entries);
}

std::uint64_t CLIPTextEncodeControlnet::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&text});
}

void CLIPTextEncodeControlnet::infer(Infer& question) {
  const auto from = question[clip];
  const auto prompt = question[text];
  if (!from || !prompt) return;
  const auto states = infer_states(question, *from, {.text = *prompt, .by_encoder = {}});
  if (!states) return;
  const Value told = blocks::told_info(tensor_info(HEDDLE_F32, *states));
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, conditioning);
  for (blocks::EntryShapes& entry : entries)
    entry.scope = Record(entry.scope).set(kControlText, told).value();
  blocks::infer_entries(question, out, entries);
  question.shares(out);
}

}  // namespace heddle::encoders
