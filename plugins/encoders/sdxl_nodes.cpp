#include "sdxl_nodes.h"

#include <initializer_list>
#include <utility>

#include "encode.h"

namespace heddle::encoders {
namespace {

// As in ComfyUI all but CLIP-L read CLIP-G's text.
Prompt sdxl_prompt(const std::string& text_g, const std::string& text_l) {
  return {.text = text_g, .by_encoder = {{"clip_l", text_l}}, .others_read_text = true};
}

// All entries with these fields.
Value with_fields(const Value& list, std::initializer_list<std::pair<const char*, Value>> fields) {
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    Record entry(list.item(i));
    for (const auto& [key, value] : fields) entry.set(key, value);
    entries.push_back(entry.value());
  }
  return list_of(entries);
}

}  // namespace

void CLIPTextEncodeSDXL::execute(Context& ctx) {
  const Value list = encode_prompt(ctx, ctx[clip], sdxl_prompt(ctx[text_g], ctx[text_l]));
  ctx[conditioning] = with_fields(list, {{"width", value_of(ctx[width])},
                                         {"height", value_of(ctx[height])},
                                         {"crop_w", value_of(ctx[crop_w])},
                                         {"crop_h", value_of(ctx[crop_h])},
                                         {"target_width", value_of(ctx[target_width])},
                                         {"target_height", value_of(ctx[target_height])}});
}

std::uint64_t CLIPTextEncodeSDXL::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&text_g, &text_l});
}

void CLIPTextEncodeSDXL::infer(Infer& question) {
  const auto from = question[clip];
  const auto g = question[text_g], l = question[text_l];
  if (from && g && l) infer_prompt(question, *from, sdxl_prompt(*g, *l), conditioning);
}

void CLIPTextEncodeSDXLRefiner::execute(Context& ctx) {
  const Value list = encode_prompt(ctx, ctx[clip], {.text = ctx[text], .by_encoder = {}});
  ctx[conditioning] = with_fields(list, {{"aesthetic_score", value_of(ctx[ascore])},
                                         {"width", value_of(ctx[width])},
                                         {"height", value_of(ctx[height])}});
}

std::uint64_t CLIPTextEncodeSDXLRefiner::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&text});
}

void CLIPTextEncodeSDXLRefiner::infer(Infer& question) {
  const auto from = question[clip];
  const auto prompt = question[text];
  if (from && prompt)
    infer_prompt(question, *from, {.text = *prompt, .by_encoder = {}}, conditioning);
}

}  // namespace heddle::encoders
