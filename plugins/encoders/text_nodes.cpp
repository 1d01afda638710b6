#include "text_nodes.h"

#include "encode.h"

namespace heddle::encoders {

void CLIPTextEncode::execute(Context& ctx) {
  ctx[conditioning] = encode_prompt(ctx, ctx[clip], {.text = ctx[text]});
}

void CLIPTextEncodeFlux::execute(Context& ctx) {
  const Prompt prompt{.by_encoder = {{"clip_l", ctx[clip_l]}, {"t5xxl", ctx[t5xxl]}}};
  const Value list = encode_prompt(ctx, ctx[clip], prompt);
  ctx[conditioning] =
      list_of({Record(list.item(0)).set("guidance", value_of(ctx[guidance])).value()});
}

void CLIPSetLastLayer::execute(Context& ctx) {
  ctx[out] = Record(ctx[clip]).set("stop_at_layer", value_of(ctx[layer])).value();
}

}  // namespace heddle::encoders
