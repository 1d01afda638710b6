#include "style_nodes.h"

#include <limits>

#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/entry_shapes.h"
#include "vision_tower.h"

namespace heddle::encoders {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
std::int64_t setting_of(const Value& model, const char* key) {
  return model_settings(model).get<std::int64_t>(key, 0);
}

Value model_in(const Value& record, const char* what) {
  const Value model = record.field("model");
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string(what) + ": it holds no model. Link a loader.");
}

// What the style model reads has to be what the tower makes, and what it makes what texts are.
void check_style_width(std::int64_t given, std::int64_t wanted, const char* what) {
  if (given == wanted) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string(what) + " of width " + std::to_string(given) +
                                           ", the style model is for " + std::to_string(wanted) +
                                           ". FLUX.1 Redux goes with "
                                           "sigclip_vision_patch14_384 and T5-XXL.");
}

// Throws where these are no states of pictures: (B, T, width).
void check_seen_states(const Shape& shape) {
  if (shape.size() == 3 && shape[0] >= 1) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "clip_vision_output: it has no states (pictures, tokens, width) of a vision tower. "
              "Link CLIPVisionEncode with sigclip_vision_patch14_384.");
}

void check_strength(const std::string& type, double strength) {
  if (type != "attn_bias" || strength == 1) return;
  throw Error(HEDDLE_UNSUPPORTED,
              "strength_type: attn_bias with a strength of " + std::to_string(strength) +
                  " biases attentions, which no model here does. Take multiply, or a strength of "
                  "1.");
}

// text (B, T, D) with style (1, n, D) behind each item's.
Tensor with_style(Context& ctx, const Tensor& text, const Tensor& style) {
  check_style_width(text.size(2), style.size(2), "conditioning: texts");
  const std::int64_t length = text.size(1), all = length + style.size(1);
  const Tensor joined = ctx.make({text.size(0), all, text.size(2)}, HEDDLE_F32);
  ops::copy_into(ctx, text, joined.slice(1, 0, length));
  for (std::int64_t item = 0; item < text.size(0); ++item)
    ops::copy_into(ctx, style, joined.slice(0, item, item + 1).slice(1, length, all));
  return joined;
}

}  // namespace

void CLIPVisionEncode::execute(Context& ctx) {
  const Value tower = model_in(ctx[clip_vision], "clip_vision");
  ctx[seen] = seen_by_tower(ctx, tower, ctx[image], ctx[crop] == "center");
}

void CLIPVisionEncode::infer(Infer& question) {
  const auto from = question[clip_vision];
  const auto shape = question.shape(image);
  const auto how = question[crop];
  if (!from || !shape || !how || !from->field("model").is(HEDDLE_KIND_MODEL)) return;
  for (const auto& [field, made] :
       tell_tower(question, from->field("model"), *shape, *how == "center"))
    question.out(seen, field, HEDDLE_F32, made);
}

void StyleModelApply::execute(Context& ctx) {
  const Value style = model_in(ctx[style_model], "style_model");
  const double factor = ctx[strength];
  check_strength(ctx[strength_type], factor);
  const Value states = ctx[clip_vision_output].field("last_hidden");
  check_seen_states(states.is(HEDDLE_KIND_TENSOR) ? states.as<Tensor>().shape() : Shape());
  const Tensor seen = states.as<Tensor>();
  check_style_width(seen.size(2), setting_of(style, "hidden_width"),
                    "clip_vision_output: what the vision tower saw is");
  const Value made = call_model(ctx, style, Record().set("hidden", value_of(seen)).value());
  Tensor tokens = made.field("tokens").as<Tensor>();
  tokens = tokens.reshape({1, tokens.size(0) * tokens.size(1), tokens.size(2)});
  if (ctx[strength_type] == "multiply" && factor != 1)
    tokens = ops::scale_clamp(ctx, tokens, {factor, 0, -kUnlimited, kUnlimited});
  const Value list = ctx[conditioning];
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value entry = list.item(i);
    const Tensor text = entry.field("cross_attn").as<Tensor>();
    entries.push_back(
        Record(entry).set("cross_attn", value_of(with_style(ctx, text, tokens))).value());
  }
  ctx[out] = list_of(entries);
}

void StyleModelApply::infer(Infer& question) {
  const auto style = question[style_model];
  const auto shape = question.shape(clip_vision_output, "last_hidden");
  const auto type = question[strength_type];
  const auto factor = question[strength];
  if (type && factor) check_strength(*type, *factor);
  if (shape) check_seen_states(*shape);
  if (!style || !shape || !style->field("model").is(HEDDLE_KIND_MODEL)) return;
  const Value model = style->field("model");
  check_style_width((*shape)[2], setting_of(model, "hidden_width"),
                    "clip_vision_output: what the vision tower sees is");
  question.call(model, {{{{"hidden", HEDDLE_F32, *shape}}, {}}});
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, conditioning);
  for (blocks::EntryShapes& entry : entries) {
    const Shape text = blocks::shape_of(entry.text);
    if (text.size() != 3) return;
    check_style_width(text[2], setting_of(model, "width"), "conditioning: texts");
    entry.text = tensor_info(HEDDLE_F32, {text[0], text[1] + (*shape)[0] * (*shape)[1], text[2]});
  }
  blocks::infer_entries(question, out, entries);
}

}  // namespace heddle::encoders
