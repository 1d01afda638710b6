#include "photo_maker_nodes.h"

#include <algorithm>

#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "encode.h"
#include "pictures.h"
#include "text_nodes.h"
#include "vision_tower.h"

namespace heddle::encoders {
namespace {

constexpr std::string_view kTrigger = "photomaker";
constexpr std::int64_t kWindow = 77;  // tokens

// A text without the trigger word, and the row of the word before it; none without that word.
struct Named {
  std::string text;
  std::optional<std::int64_t> row;
};

Named named_in(const std::string& text) {
  // ComfyUI finds the word between single spaces.
  std::size_t begin = 0;
  std::int64_t number = 1;
  for (;; ++number) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (std::string_view(text).substr(begin, end - begin) == kTrigger) break;
    if (end == text.size()) return {text, {}};
    begin = end + 1;
  }
  // And leaves out the word of that number, of which empty ones are none.
  Named named{text, number - 1};
  std::int64_t counted = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = std::min(text.find_first_not_of(" \n", at), text.size()),
                      last = std::min(text.find_first_of(" \n", first), text.size());
    if (first < last && ++counted == number) {
      named.text.erase(first, last - first);
      break;
    }
    at = last;
  }
  return named;
}

Value photo_model(const Value& record) {
  const Value model = record.field("model");
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT, "photomaker: it holds no model. Link a PhotoMakerLoader.");
}

// The states (1, 77, C) with what the model makes of one row in its place.
Tensor fused_states(Context& ctx, const Value& model, const Tensor& states, std::int64_t row,
                    const Tensor& picture) {
  if (states.rank() != 3 || states.size(0) != 1 || states.size(1) != kWindow)
    throw Error(HEDDLE_UNSUPPORTED, "text: it takes " + std::to_string(states.size(1)) +
                                        " tokens. PhotoMaker is used with texts of one window, " +
                                        std::to_string(kWindow) + " tokens. Shorten the text.");
  const auto wanted = model_settings(model).get<std::int64_t>("width", 0);
  if (states.size(2) != wanted)
    throw Error(HEDDLE_INVALID_ARGUMENT, "clip: the text's states are " +
                                             std::to_string(states.size(2)) +
                                             " wide, PhotoMaker reads " + std::to_string(wanted) +
                                             ". Link the CLIP of an SDXL checkpoint.");
  const Tensor told = ops::contiguous(ctx, states.slice(1, row, row + 1)).reshape({1, wanted});
  const Value made = call_model(
      ctx, model, Record().set("picture", value_of(picture)).set("row", value_of(told)).value());
  const Tensor all = ctx.make(states.shape(), HEDDLE_F32);
  ops::copy_into(ctx, states, all);
  ops::copy_into(ctx, made.field("fused").as<Tensor>().reshape({1, 1, wanted}),
                 all.slice(1, row, row + 1));
  return all;
}

}  // namespace

void PhotoMakerEncode::execute(Context& ctx) {
  const Named named = named_in(ctx[text]);
  const Value model = photo_model(ctx[photomaker]);
  const Tensor given = ctx[image];
  picture_size(given.shape(), "image");
  const Value list = encode_prompt(ctx, ctx[clip], {.text = named.text, .by_encoder = {}});
  if (!named.row || *named.row >= kWindow) {
    ctx[conditioning] = list;
    return;
  }
  const Tensor picture = tower_pixels(ctx, given.slice(0, 0, 1), model_settings(model), true);
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Tensor states = list.item(i).field("cross_attn").as<Tensor>();
    const Tensor fused = fused_states(ctx, model, states, *named.row, picture);
    entries.push_back(Record(list.item(i)).set("cross_attn", value_of(fused)).value());
  }
  ctx[conditioning] = list_of(entries);
}

std::uint64_t PhotoMakerEncode::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&text});
}

void PhotoMakerEncode::infer(Infer& question) {
  const auto from = question[clip], maker = question[photomaker];
  const auto prompt = question[text];
  const auto shape = question.shape(image);
  if (!from || !maker || !prompt || !shape || shape->size() != 4) return;
  const Value model = photo_model(*maker);
  picture_size(*shape, "image");
  const Named named = named_in(*prompt);
  const std::size_t entries =
      infer_prompt(question, *from, {.text = named.text, .by_encoder = {}}, conditioning);
  if (!named.row || *named.row >= kWindow) return;
  const Value settings = model_settings(model);
  const auto size = settings.get<std::int64_t>("size", 0),
             width = settings.get<std::int64_t>("width", 0);
  Shape first = *shape;
  first[0] = 1;
  question.host_scratch(tower_bytes(first, size, true));
  for (std::size_t i = 0; i < entries; ++i)
    question.call(
        model,
        {{{{"picture", HEDDLE_F32, {1, size, size, 3}}, {"row", HEDDLE_F32, {1, width}}}, {}}});
}

}  // namespace heddle::encoders
