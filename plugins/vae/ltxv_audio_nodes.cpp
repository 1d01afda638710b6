#include "plugins/vae/ltxv_audio_nodes.h"

#include <optional>
#include <string>

#include <heddle/checked.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

namespace heddle::vae {
namespace {

constexpr std::size_t kSoundAxes = 4;

// The parts of an audio autoencoder. Throws where the value is another.
struct AudioAutoencoder {
  explicit AudioAutoencoder(const Value& vae)
      : decoder(vae.field("decoder")), vocoder(vae.field("audio").field("vocoder")) {
    if (!decoder.is(HEDDLE_KIND_MODEL) || !vocoder.is(HEDDLE_KIND_MODEL))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "audio_vae: this is no autoencoder of sound. Link LTXVAudioVAELoader.");
  }
  Value decoder, vocoder;
};

// Frames and bands of the spectra that latents (B, C, T, M) become.
Shape spectrum_shape(const Shape& latent) {
  return {latent[0], 2, checked_product({latent[2], 4}, "the spectrum") - 3,
          checked_product({latent[3], 4}, "the spectrum")};
}

// Of a latent of sound, or of pictures and sound.
Tensor sound_samples(const Value& latent) {
  Value samples = latent.field("samples");
  if (samples.is(HEDDLE_KIND_LIST) && samples.count() > 0)
    samples = samples.item(samples.count() - 1);
  if (!samples.is(HEDDLE_KIND_TENSOR) || samples.as<Tensor>().rank() != kSoundAxes ||
      samples.as<Tensor>().count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "samples: these are not (batch, channels, frames, bands). Link a latent of sound, "
                "such as that of LTXVEmptyLatentAudio, or of pictures and sound.");
  return samples.as<Tensor>();
}

}  // namespace

void LTXVAudioVAEDecode::execute(Context& ctx) {
  const AudioAutoencoder parts(ctx[audio_vae]);
  const Tensor z = ops::contiguous(ctx, sound_samples(ctx[samples]));
  const Value mel =
      call_model(ctx, parts.decoder, Record().set("z", value_of(z)).value()).field("mel");
  const Value waveform =
      call_model(ctx, parts.vocoder, Record().set("mel", mel).value()).field("waveform");
  const auto rate = model_settings(parts.vocoder).get<std::int64_t>("sample_rate", 0);
  ctx[audio] = Record().set("waveform", waveform).set("sample_rate", value_of(rate)).value();
}

void LTXVAudioVAEDecode::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  if (!shape) shape = question.shape(samples, "samples.1");
  const std::optional<Value> value = question[audio_vae];
  if (!shape || shape->size() != kSoundAxes || !value) return;
  const Value decoder = value->field("decoder"), vocoder = value->field("audio").field("vocoder");
  if (!decoder.is(HEDDLE_KIND_MODEL) || !vocoder.is(HEDDLE_KIND_MODEL)) return;
  const Shape mel = spectrum_shape(*shape);
  question.call(decoder, {{.constants = {{"z", HEDDLE_F32, *shape}}, .steps = {}}});
  question.call(vocoder, {{.constants = {{"mel", HEDDLE_F32, mel}}, .steps = {}}});
  const auto times = model_settings(vocoder).get<std::int64_t>("upsample", 1);
  question.out(audio, "waveform", HEDDLE_F32,
               {mel[0], 2, checked_product({mel[2], times}, "the sound")});
}

}  // namespace heddle::vae
