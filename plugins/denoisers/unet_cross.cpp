#include "unet_cross.h"

#include "unet_adapters.h"
#include "unet_blocks.h"
#include "unet_filler.h"

namespace heddle::denoisers {

bool reads_text_twice(const UnetSelfPlace& place, std::int64_t context) {
  if (place.width == context) return false;
  const std::string keys = place.names.in_part(place.part, place.module + "attn1.to_k", "weight");
  return place.file.has(keys) && place.file.size(keys, 1) == context;
}

Source add_cross_blocks(const UnetSelfPlace& place, const Source& text, std::int64_t width,
                        Blocks& graph) {
  using P = UnetTextPart;
  const std::string path = place.path + ".first", &at = place.module;
  const auto filler = [&](Block& block, const std::string& of) {
    return UnetFiller{place.names, &place.part, blocks::Slots(place.file, block, of)};
  };
  Block kv = graph.add<UnetContext>(path + ".context");
  kv.link(UnetContext::x, place.x).link(UnetContext::context, text);
  filler(kv, path + ".context")
      .matrix(UnetContext::kv, {at + "attn1.to_k", at + "attn1.to_v"}, {2 * place.width, width});
  Block made = graph.add<P>(path);
  made.link(P::tokens, place.tokens).link(P::kv, kv[UnetContext::out]).set(P::heads, place.heads);
  UnetFiller fill = filler(made, path);
  fill.both(P::norm, P::norm_bias, at + "norm1", {place.width});
  fill.matrix(P::q, {at + "attn1.to_q"}, {place.width, place.width});
  return made[P::attended];
}

}  // namespace heddle::denoisers
