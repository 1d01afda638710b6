#include "text_nodes.h"

#include "encode.h"

namespace heddle::encoders {
namespace {

Prompt flux_prompt(const std::string& clip_l, const std::string& t5xxl) {
  return {.text = "", .by_encoder = {{"clip_l", clip_l}, {"t5xxl", t5xxl}}};
}

}  // namespace

void CLIPTextEncode::execute(Context& ctx) {
  ctx[conditioning] = encode_prompt(ctx, ctx[clip], {.text = ctx[text], .by_encoder = {}});
}

void CLIPTextEncode::infer(Infer& question) {
  const auto from = question[clip];
  const auto prompt = question[text];
  if (from && prompt)
    infer_prompt(question, *from, {.text = *prompt, .by_encoder = {}}, conditioning);
}

void CLIPTextEncodeFlux::execute(Context& ctx) {
  const Value list = encode_prompt(ctx, ctx[clip], flux_prompt(ctx[clip_l], ctx[t5xxl]));
  ctx[conditioning] =
      list_of({Record(list.item(0)).set("guidance", value_of(ctx[guidance])).value()});
}

void CLIPTextEncodeFlux::infer(Infer& question) {
  const auto from = question[clip];
  const auto l = question[clip_l], t5 = question[t5xxl];
  if (from && l && t5) infer_prompt(question, *from, flux_prompt(*l, *t5), conditioning);
}

void CLIPSetLastLayer::execute(Context& ctx) {
  ctx[out] = Record(ctx[clip]).set("stop_at_layer", value_of(ctx[layer])).value();
}

}  // namespace heddle::encoders
