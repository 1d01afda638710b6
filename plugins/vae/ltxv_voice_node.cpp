#include "plugins/vae/ltxv_voice_node.h"

#include <vector>

#include <heddle/model.hpp>
#include <heddle/ops.hpp>

#include "plugins/vae/sound_nodes.h"

namespace heddle::vae {
namespace {

constexpr const char *kVoiceField = "ref_audio", *kPatches = "prediction_patches";

// Of a latent of sound (B, C, frames, bands) what the model reads of each frame: the bands of the
// first channel, then those of the next.
Tensor voice_tokens(Context& ctx, const Tensor& latent) {
  const std::int64_t items = latent.size(0), channels = latent.size(1), frames = latent.size(2),
                     bands = latent.size(3);
  const Tensor tokens = ctx.make({items, frames, channels * bands}, HEDDLE_F32);
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
  const Value settings = model_settings(model), before = settings.field(kPatches);
  std::vector<Value> patches;
  for (std::uint32_t i = 0; i < before.count(); ++i) patches.push_back(before.item(i));
  const Value numbers = Record()
                            .set("scale", value_of(scale))
                            .set("start_percent", value_of(start))
                            .set("end_percent", value_of(end))
                            .value();
  patches.push_back(Record()
                        .set("name", value_of("voice_guidance"))
                        .set("numbers", numbers)
                        .set("without_field", value_of(kVoiceField))
                        .value());
  return with_settings(model, Record(settings).set(kPatches, list_of(patches)).value());
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

}  // namespace heddle::vae
