#include "plugins/vae/ltxv_audio_nodes.h"

#include <optional>
#include <string>
#include <vector>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>
#include <heddle/session.hpp>

#include "plugins/blocks/sound_latents.h"
#include "plugins/vae/sound_spectrum.h"

namespace heddle::vae {
namespace {

constexpr std::size_t kSoundAxes = 4;

// The parts of an audio autoencoder. Throws where the value is another.
struct AudioAutoencoder {
  explicit AudioAutoencoder(const Value& vae)
      : decoder(vae.field("decoder")),
        encoder(vae.field("encoder")),
        vocoder(vae.field("audio").field("vocoder")) {
    if (!decoder.is(HEDDLE_KIND_MODEL) || !vae.has("audio"))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "audio_vae: this is no autoencoder of sound. Link LTXVAudioVAELoader, or "
                  "VAELoader with a file of one.");
  }
  Value decoder, encoder, vocoder;  // no vocoder: the decoder makes sound
};

// Frames and bands of the spectra that latents (B, C, T, M) become.
Shape spectrum_shape(const Shape& latent) {
  return {latent[0], 2, checked_product({latent[2], 4}, "the spectrum") - 3,
          checked_product({latent[3], 4}, "the spectrum")};
}
// The other way.
Shape latent_of_spectrum(const Shape& spectrum, std::int64_t channels) {
  return {spectrum[0], channels, (spectrum[2] + 3) / 4, spectrum[3] / 4};
}

SpectrumNumbers spectrum_numbers(const Value& encoder) {
  const Value told = model_settings(encoder);
  SpectrumNumbers numbers;
  numbers.rate = told.get<std::int64_t>("sample_rate", numbers.rate);
  numbers.window = told.get<std::int64_t>("mel_window", numbers.window);
  numbers.hop = told.get<std::int64_t>("mel_hop_length", numbers.hop);
  numbers.bands = told.get<std::int64_t>("mel_bins", numbers.bands);
  return numbers;
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

// Of an encoder that reads spectra.
Tensor encoded_spectra(Context& ctx, const Value& encoder, std::span<const float> points,
                       const Shape& shape) {
  const SpectrumNumbers numbers = spectrum_numbers(encoder);
  const SoundSpectrum spectrum(numbers);
  const std::int64_t frames = spectrum_frames(shape[2], numbers);
  const Shape made{shape[0], shape[1], frames, numbers.bands};
  HostMemory memory(ctx);
  std::pmr::vector<float> bands(
      std::size_t(checked_product({shape[0], shape[1], frames, numbers.bands}, "the spectrum")),
      &memory);
  const auto each = std::size_t(shape[2]), all = std::size_t(frames * numbers.bands);
  for (std::size_t i = 0; i < std::size_t(shape[0] * shape[1]); ++i)
    spectrum.log_bands(points.subspan(i * each, each), std::span(bands).subspan(i * all, all));
  const Tensor mel = ctx.upload(made, HEDDLE_F32, bands.data());
  return call_model(ctx, encoder, Record().set("mel", value_of(mel)).value())
      .get<Tensor>("mean", {});
}

}  // namespace

MadeSound decoded_sound(Context& ctx, const Value& vae, const Value& latent) {
  const AudioAutoencoder parts(vae);
  Tensor z = ops::contiguous(ctx, sound_samples(latent));
  if (parts.vocoder.is(HEDDLE_KIND_MODEL)) {
    const Value mel =
        call_model(ctx, parts.decoder, Record().set("z", value_of(z)).value()).field("mel");
    return {call_model(ctx, parts.vocoder, Record().set("mel", mel).value())
                .get<Tensor>("waveform", {}),
            model_settings(parts.vocoder).get<std::int64_t>("sample_rate", 0)};
  }
  const Value settings = model_settings(parts.decoder);
  const auto channels = settings.get<std::int64_t>("latent_channels", 0);
  if (z.size(1) != channels)
    throw Error(HEDDLE_INVALID_ARGUMENT, "samples: they have " + std::to_string(z.size(1)) +
                                             " channels, the autoencoder of sound takes " +
                                             std::to_string(channels) +
                                             ". Load the one that belongs to the model.");
  const Tensor means = sound_statistics(ctx, vae, "latent_means"),
               deviations = sound_statistics(ctx, vae, "latent_deviations");
  if (means && deviations) z = ops::add(ctx, ops::mul(ctx, z, deviations), means);
  return {call_model(ctx, parts.decoder, Record().set("z", value_of(z)).value())
              .get<Tensor>("waveform", {}),
          settings.get<std::int64_t>("sample_rate", 0)};
}

std::optional<Shape> tell_decoded_sound(Infer& question, const Value& vae, const Shape& samples) {
  const Value decoder = vae.field("decoder"), vocoder = vae.field("audio").field("vocoder");
  if (samples.size() != kSoundAxes || !decoder.is(HEDDLE_KIND_MODEL) || !vae.has("audio"))
    return {};
  question.call(decoder, {{.constants = {{"z", HEDDLE_F32, samples}}, .steps = {}}});
  if (!vocoder.is(HEDDLE_KIND_MODEL)) {
    const auto hop = model_settings(decoder).get<std::int64_t>("hop", 1);
    return Shape{samples[0], samples[2], checked_product({samples[3], hop}, "the sound")};
  }
  const Shape mel = spectrum_shape(samples);
  question.call(vocoder, {{.constants = {{"mel", HEDDLE_F32, mel}}, .steps = {}}});
  const auto times = model_settings(vocoder).get<std::int64_t>("upsample", 1);
  return Shape{mel[0], 2, checked_product({mel[2], times}, "the sound")};
}

Tensor encoded_sound(Context& ctx, const Value& vae, std::span<const float> points,
                     const Shape& shape) {
  const AudioAutoencoder parts(vae);
  if (!parts.encoder.is(HEDDLE_KIND_MODEL))
    throw Error(HEDDLE_UNSUPPORTED,
                "audio_vae: this file has no encoder of sound. Load one that has.");
  if (parts.vocoder.is(HEDDLE_KIND_MODEL))
    return encoded_spectra(ctx, parts.encoder, points, shape);
  return encoded_waves(ctx, vae, points, shape);
}

std::optional<Shape> tell_encoded_sound(Infer& question, const Value& vae, const Shape& sound) {
  const Value encoder = vae.field("encoder");
  if (!vae.field("audio").field("vocoder").is(HEDDLE_KIND_MODEL))
    return tell_encoded_waves(question, vae, sound);
  if (!encoder.is(HEDDLE_KIND_MODEL)) return {};
  const SpectrumNumbers numbers = spectrum_numbers(encoder);
  if (numbers.hop < 1) return {};
  const Shape mel{sound[0], sound[1], spectrum_frames(sound[2], numbers), numbers.bands};
  question.call(encoder, {{.constants = {{"mel", HEDDLE_F32, mel}}, .steps = {}}});
  question.host_scratch(sizeof(float) * std::uint64_t(checked_product(
                                            {mel[0], mel[1], mel[2], mel[3]}, "the spectrum")));
  return latent_of_spectrum(mel, model_settings(encoder).get<std::int64_t>("latent_channels", 0));
}

void LTXVAudioVAEDecode::execute(Context& ctx) {
  const MadeSound made = decoded_sound(ctx, ctx[audio_vae], ctx[samples]);
  ctx[audio] = Record()
                   .set("waveform", value_of(made.waveform))
                   .set("sample_rate", value_of(made.rate))
                   .value();
}

void LTXVAudioVAEDecode::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  if (!shape) shape = question.shape(samples, "samples.1");
  const std::optional<Value> value = question[audio_vae];
  if (!shape || !value) return;
  if (const std::optional<Shape> sound = tell_decoded_sound(question, *value, *shape))
    question.out(audio, "waveform", HEDDLE_F32, *sound);
}

}  // namespace heddle::vae
