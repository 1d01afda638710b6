#include "plugins/vae/ltxv_voice_node.h"

#include <vector>

#include <heddle/model.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/entry_shapes.h"
#include "plugins/blocks/lists.h"
#include "plugins/vae/sound_nodes.h"

namespace heddle::vae {
namespace {

constexpr const char *kVoiceField = "ref_audio", *kPatches = "prediction_patches";

// Of the tokens of a latent of sound (B, C, frames, bands).
Shape token_shape(const Shape& latent) { return {latent[0], latent[2], latent[1] * latent[3]}; }

// What the model reads of each frame: the bands of the first channel, then those of the next.
Tensor voice_tokens(Context& ctx, const Tensor& latent) {
  const std::int64_t items = latent.size(0), channels = latent.size(1), frames = latent.size(2),
                     bands = latent.size(3);
  const Tensor tokens = ctx.make(token_shape(latent.shape()), HEDDLE_F32);
  ops::copy_into(ctx, latent.permute({0, 2, 1, 3}),
                 tokens.reshape({items, frames, channels, bands}));
  return tokens;
}

Value with_voice(const Value& conditioning, const Tensor& tokens) {
  const Value voice = Record().set("tokens", value_of(tokens)).value();
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < conditioning.count(); ++i)
    entries.push_back(Record(conditioning.item(i)).set(kVoiceField, voice).value());
  return list_of(entries);
}

// The model whose prediction without the voice is asked for, too (heddle/diffusion/values.h).
Value with_voice_guidance(const Value& model, double scale, double start, double end) {
  const Value settings = model_settings(model);
  const Value numbers = Record()
                            .set("scale", value_of(scale))
                            .set("start_percent", value_of(start))
                            .set("end_percent", value_of(end))
                            .value();
  const Value patch = Record()
                          .set("name", value_of("voice_guidance"))
                          .set("numbers", numbers)
                          .set("without_field", value_of(kVoiceField))
                          .value();
  const Value patches = blocks::appended(settings.field(kPatches), patch);
  return with_settings(model, Record(settings).set(kPatches, patches).value());
}

void tell_voice(Infer& question, const Input<Value>& given, const Output<Value>& made,
                const heddle_tensor_info& tokens) {
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, given);
  for (blocks::EntryShapes& entry : entries) entry.voice = tokens;
  blocks::infer_entries(question, made, entries);
}

}  // namespace

void LTXVReferenceAudio::execute(Context& ctx) {
  const Value latent = encoded_audio(ctx, ctx[reference_audio], ctx[audio_vae]);
  const Tensor tokens = voice_tokens(ctx, latent.get<Tensor>("samples", {}));
  ctx[positive_out] = with_voice(ctx[positive], tokens);
  ctx[negative_out] = with_voice(ctx[negative], tokens);
  const double scale = ctx[identity_guidance_scale];
  const Value given = ctx[model];
  ctx[model_out] =
      scale == 0 ? given : with_voice_guidance(given, scale, ctx[start_percent], ctx[end_percent]);
}

void LTXVReferenceAudio::infer(Infer& question) {
  const Value given = question.part(model, "");
  const auto scale = question[identity_guidance_scale], start = question[start_percent],
             end = question[end_percent];
  if (given.is(HEDDLE_KIND_MODEL) && scale && start && end)
    question.known(model_out, "",
                   *scale == 0 ? given : with_voice_guidance(given, *scale, *start, *end));
  const std::optional<Shape> latent = tell_encoded_audio(question, reference_audio, audio_vae);
  if (!latent) return;
  const heddle_tensor_info tokens = tensor_info(HEDDLE_F32, token_shape(*latent));
  tell_voice(question, positive, positive_out, tokens);
  tell_voice(question, negative, negative_out, tokens);
}

}  // namespace heddle::vae
