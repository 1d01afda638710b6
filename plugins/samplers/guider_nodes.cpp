#include "guider_nodes.h"

#include "guide.h"
#include "sample_shapes.h"

namespace heddle::samplers {
namespace {

// What guiders of three conditionings tell; nothing of the run where a number is not known.
struct ToldGuide {
  const Input<Value>&model, &positive, &negative, &third;
  std::optional<double> cfg, number;
  const char* mix;
};

void infer_three(Infer& question, const Output<Value>& guider, const ToldGuide& told) {
  if (const Value known = question.part(told.model, "")) question.known(guider, "model", known);
  infer_entries(question, guider, entry_shapes(question, told.positive), "positive");
  infer_entries(question, guider, entry_shapes(question, told.negative), "negative");
  infer_entries(question, guider, entry_shapes(question, told.third), "third");
  question.shares(guider);
  if (!told.cfg || !told.number) return;
  question.known(guider, "mix", value_of(told.mix));
  question.known(guider, "cfg", value_of(*told.cfg));
  question.known(guider, "number", value_of(*told.number));
}

const char* mix_of(const std::string& style) {
  return style == "nested" ? "dual_cfg_nested" : "dual_cfg";
}

// The model whose sound is guided by a number of its own.
Value guided_apart(const Value& model, double video_cfg, double audio_cfg) {
  if (video_cfg == audio_cfg) return model;
  return with_patch(model, "sound_cfg", {{{"audio_cfg", audio_cfg}}, {}});
}

}  // namespace

void DualCFGGuider::execute(Context& ctx) {
  ctx[guider] = guider_record({.model = ctx[model],
                               .positive = ctx[cond1],
                               .negative = ctx[negative],
                               .cfg = ctx[cfg_conds],
                               .mix = *find_mix(mix_of(ctx[style])),
                               .third = ctx[cond2],
                               .number = ctx[cfg_cond2_negative]});
}

void DualCFGGuider::infer(Infer& question) {
  const std::optional<std::string> way = question[style];
  infer_three(question, guider,
              {model, cond1, negative, cond2, way ? question[cfg_conds] : std::nullopt,
               question[cfg_cond2_negative], mix_of(way.value_or(""))});
}

void PerpNegGuider::execute(Context& ctx) {
  ctx[guider] = guider_record({.model = ctx[model],
                               .positive = ctx[positive],
                               .negative = ctx[negative],
                               .cfg = ctx[cfg],
                               .mix = Mix::kPerpNeg,
                               .third = ctx[empty_conditioning],
                               .number = ctx[neg_scale]});
}

void PerpNegGuider::infer(Infer& question) {
  infer_three(question, guider,
              {model, positive, negative, empty_conditioning, question[cfg], question[neg_scale],
               "perp_neg"});
}

void DualModelGuider::execute(Context& ctx) {
  ctx[guider] =
      guider_record({.model = ctx[model],
                     .positive = ctx[positive],
                     .negative = ctx.has(negative) ? ctx[negative] : Value(),
                     .cfg = ctx[cfg],
                     .negative_model = ctx.has(model_negative) ? ctx[model_negative] : Value()});
}

void DualModelGuider::infer(Infer& question) {
  const Value known = question.part(model, ""), other = question.part(model_negative, "");
  if (known) question.known(guider, "model", known);
  if (other) question.known(guider, "negative_model", other);
  infer_entries(question, guider, entry_shapes(question, positive), "positive");
  infer_entries(question, guider, entry_shapes(question, negative), "negative");
  question.shares(guider);
  if (const std::optional<double> scale = question[cfg])
    question.known(guider, "cfg", value_of(*scale));
}

void LTXVDualCFGGuider::execute(Context& ctx) {
  ctx[guider] = guider_record({.model = guided_apart(ctx[model], ctx[video_cfg], ctx[audio_cfg]),
                               .positive = ctx[positive],
                               .negative = ctx[negative],
                               .cfg = ctx[video_cfg]});
}

void LTXVDualCFGGuider::infer(Infer& question) {
  const Value known = question.part(model, "");
  const std::optional<double> pictures = question[video_cfg], sound = question[audio_cfg];
  infer_entries(question, guider, entry_shapes(question, positive), "positive");
  infer_entries(question, guider, entry_shapes(question, negative), "negative");
  question.shares(guider);
  if (!known || !pictures || !sound) return;
  question.known(guider, "model", guided_apart(known, *pictures, *sound));
  question.known(guider, "cfg", value_of(*pictures));
}

}  // namespace heddle::samplers
