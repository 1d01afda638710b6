#include "shown_states.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "prompt_tokens.h"

namespace heddle::encoders {
namespace {

constexpr int kTokens = 1;  // the axis

std::int64_t width_of(const TextEncoder& encoder) {
  return model_settings(encoder.model()).get<std::int64_t>("hidden_width", 0);
}

// Behind the first place of these ids at or behind `from`.
std::int64_t behind(const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& mark,
                    std::int64_t from, const std::string& name) {
  const auto found = std::search(ids.begin() + from, ids.end(), mark.begin(), mark.end());
  if (found == ids.end() || mark.empty())
    throw Error(HEDDLE_INVALID_ARGUMENT, "the prompt in its template has no '" + name +
                                             "' that the tokenizer knows. Put tokenizer.json of "
                                             "Llama 3 into the folder tokenizers/llama3 of a "
                                             "models folder.");
  return found - ids.begin() + std::int64_t(mark.size());
}

}  // namespace

Windows windows_with_states(const TextEncoder& encoder, const std::string& prompt,
                            const ShownStates& shown) {
  const std::size_t at = prompt.find(kPictureMark);
  if (at == prompt.npos)
    throw Error(HEDDLE_INTERNAL, std::string("the template has no ") + kPictureMark);
  std::vector<std::int32_t> ids = encoder.ids_of(prompt.substr(0, at));
  const std::vector<std::int32_t> rest =
      encoder.ids_of(prompt.substr(at + std::string_view(kPictureMark).size()));
  Windows all;
  all.shown = {0, std::int64_t(ids.size()), shown.shape[kTokens], 1};
  ids.resize(std::size_t(all.shown->end()), 0);
  ids.insert(ids.end(), rest.begin(), rest.end());
  // As ComfyUI: where a text begins with such a gap of its own, the turn's last token counts, too.
  std::int64_t text = behind(ids, encoder.ids_of(shown.turn), all.shown->end(), shown.turn);
  const std::vector<std::int32_t> gap = encoder.ids_of(shown.gap);
  const bool has_gap = ids.size() - std::size_t(text) >= gap.size() &&
                       std::equal(gap.begin(), gap.end(), ids.begin() + text);
  const std::int64_t last = behind(ids, encoder.ids_of(shown.end), text, shown.end);
  text += has_gap ? std::int64_t(gap.size()) : -1;
  for (std::int64_t token = all.shown->begin; token < all.shown->end(); token += shown.each)
    all.parts.emplace_back(token, token + 1);
  all.parts.emplace_back(text, last);
  if (shown.each == 1) all.parts = {{all.shown->begin, all.shown->end()}, {text, last}};
  all.rows.push_back({std::move(ids), {}});
  return all;
}

void show_states(Context& ctx, const TextEncoder& encoder, const ShownStates& shown,
                 const Windows& windows, Record& inputs) {
  const std::int64_t length = windows.length(), width = width_of(encoder);
  if (shown.shape.back() != width || !model_takes(encoder.model(), "is_text"))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "what a vision tower saw of the picture is " + std::to_string(shown.shape.back()) +
                    " numbers a token, and " + encoder.name() + " reads " + std::to_string(width) +
                    (model_takes(encoder.model(), "is_text") ? "" : ", and no pictures") +
                    ". Load llava_llama3_vision.safetensors with CLIPVisionLoader, and "
                    "llava_llama3 with DualCLIPLoader, type hunyuan_video.");
  const Tensor rows = ctx.make({1, length, width}, HEDDLE_F32);
  ops::fill(ctx, rows, 0);
  ops::copy_into(ctx, shown.states.slice(0, 0, 1),
                 rows.slice(kTokens, windows.shown->begin, windows.shown->end()));
  std::vector<float> is_text(std::size_t(length), 1.0f);
  std::fill(is_text.begin() + windows.shown->begin, is_text.begin() + windows.shown->end(), 0.0f);
  inputs.set("pictures", value_of(rows))
      .set("is_text", value_of(ctx.upload({1, length, 1}, HEDDLE_F32, is_text.data())));
}

std::vector<Infer::Named> state_shapes(const TextEncoder& encoder, const Windows& windows) {
  if (!windows.shown) return {};
  const std::int64_t length = windows.length();
  return {{"pictures", HEDDLE_F32, {1, length, width_of(encoder)}},
          {"is_text", HEDDLE_F32, {1, length, 1}}};
}

}  // namespace heddle::encoders
