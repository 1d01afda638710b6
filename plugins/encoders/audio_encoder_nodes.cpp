#include "audio_encoder_nodes.h"

#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>
#include <heddle/session.hpp>

#include "log_mel.h"
#include "plugins/blocks/sound_resample.h"
#include "sound_encoders.h"

namespace heddle::encoders {
namespace {

constexpr double kLeastVariance = 1e-7;

// What an encoder hears, and what it makes of that.
struct SoundSizes {
  std::int64_t items, points;  // at its rate
  std::int64_t frames, bands;  // of spectra; none: it reads points
  std::int64_t states, width, layers;

  bool reads_spectra() const { return bands > 0; }
  Shape input() const {
    return reads_spectra() ? Shape{items, frames, bands} : Shape{items, points};
  }
  const char* input_name() const { return reads_spectra() ? "spectrum" : "sound"; }
};

SoundSizes sizes_of(const Value& settings, std::int64_t items, std::int64_t points) {
  const auto number = [&](const char* key) { return settings.get<std::int64_t>(key, 0); };
  SoundSizes sizes{items, points,          number("frames"), number("bands"),
                   0,     number("width"), number("layers")};
  const std::int64_t hop = number("hop"), reach = number("reach");
  if (sizes.reads_spectra())
    sizes.states = sizes.frames / 2;
  else if (hop > 0 && points >= reach)
    sizes.states = (points - reach) / hop + 1;
  return sizes;
}

// Less the mean and over the deviation of all points, as ComfyUI does with those of a batch.
void normalise(std::span<float> points) {
  double sum = 0, squares = 0;
  for (const float point : points) sum += point;
  const double mean = sum / double(points.size());
  for (const float point : points) squares += (point - mean) * (point - mean);
  const auto others = double(std::max<std::size_t>(points.size() - 1, 1));
  const double deviation = std::sqrt(squares / others + kLeastVariance);
  for (float& point : points) point = float((point - mean) / deviation);
}

// The mean of a sound's channels at the encoder's rate: (B, N).
std::pmr::vector<float> heard_points(Context& ctx, const Tensor& waveform, std::int64_t rate,
                                     std::int64_t made, HostMemory& memory) {
  const std::int64_t items = waveform.size(0), channels = waveform.size(1),
                     length = waveform.size(2);
  std::pmr::vector<float> given(std::size_t(waveform.count()), &memory);
  read_to<float>(ctx, waveform, given);
  std::pmr::vector<float> mean(std::size_t(length), &memory);
  std::pmr::vector<float> out(std::size_t(checked_product({items, made}, "the sound")), &memory);
  for (std::int64_t item = 0; item < items; ++item) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    for (std::int64_t i = 0; i < length; ++i) {
      double sum = 0;
      for (std::int64_t channel = 0; channel < channels; ++channel)
        sum += given[std::size_t((item * channels + channel) * length + i)];
      mean[std::size_t(i)] = float(sum / double(channels));
    }
    blocks::resample_sound(
        mean, rate, kSoundRate,
        std::span<float>(out).subspan(std::size_t(item * made), std::size_t(made)));
  }
  return out;
}

void throw_if_cancelled(void* context) {
  if (static_cast<Context*>(context)->cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
}

// What the encoder reads, on the call's device.
Tensor encoder_input(Context& ctx, const SoundSizes& sizes, std::pmr::vector<float>& points,
                     bool normalises, HostMemory& memory) {
  if (!sizes.reads_spectra()) {
    if (normalises) normalise(points);
    return ctx.upload(sizes.input(), HEDDLE_F32, points.data());
  }
  const std::int64_t each = sizes.frames * sizes.bands;
  std::pmr::vector<float> bands(std::size_t(checked_product({sizes.items, each}, "the spectrum")),
                                &memory);
  for (std::int64_t item = 0; item < sizes.items; ++item)
    log_mel(std::span<const float>(points).subspan(std::size_t(item * sizes.points),
                                                   std::size_t(sizes.points)),
            sizes.frames, sizes.bands,
            std::span<float>(bands).subspan(std::size_t(item * each), std::size_t(each)), memory,
            &throw_if_cancelled, &ctx);
  return ctx.upload(sizes.input(), HEDDLE_F32, bands.data());
}

Value model_of_encoder(const Value& record) {
  const Value model = record.field("model");
  if (model.is(HEDDLE_KIND_MODEL)) return model;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "audio_encoder: it holds no model. Link AudioEncoderLoader.");
}

}  // namespace

void AudioEncoderEncode::execute(Context& ctx) {
  const Value model = model_of_encoder(ctx[audio_encoder]), given = ctx[audio];
  const Tensor waveform = given.get<Tensor>("waveform", {});
  const auto rate = given.get<std::int64_t>("sample_rate", 0);
  if (!waveform || waveform.rank() != 3 || waveform.count() == 0 || rate < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio: this is no sound of (batch, channels, points) with a sample_rate. Link an "
                "AUDIO, such as that of LoadAudio.");
  const Value settings = model_settings(model);
  const SoundSizes sizes = sizes_of(settings, waveform.size(0),
                                    blocks::resampled_count(waveform.size(2), rate, kSoundRate));
  if (sizes.states == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio: the sound has " + std::to_string(sizes.points) +
                    " points at 16 kHz, the encoder hears no less than " +
                    std::to_string(settings.get<std::int64_t>("reach", 0)) +
                    ". Give a longer sound.");
  HostMemory memory(ctx);
  std::pmr::vector<float> points = heard_points(ctx, waveform, rate, sizes.points, memory);
  const Tensor input =
      encoder_input(ctx, sizes, points, settings.get<bool>("normalises", false), memory);
  const Value made =
      call_model(ctx, model, Record().set(sizes.input_name(), value_of(input)).value());
  const Tensor last = made.field("last_hidden").as<Tensor>();
  const Tensor all =
      ctx.make_host({sizes.layers + 1, sizes.items, sizes.states, sizes.width}, HEDDLE_F32);
  const auto each = std::size_t(all.count() / (sizes.layers + 1));
  for (std::int64_t i = 0; i <= sizes.layers; ++i) {
    const Tensor state =
        i == sizes.layers ? last : made.field(("hidden." + std::to_string(i)).c_str()).as<Tensor>();
    read_to<float>(ctx, state, std::span<float>(all.data<float>() + std::size_t(i) * each, each));
  }
  ctx[heard] = Record()
                   .set("encoded_audio", value_of(last))
                   .set("encoded_audio_all_layers", value_of(all))
                   .set("audio_samples", value_of(sizes.points))
                   .value();
}

void AudioEncoderEncode::infer(Infer& question) {
  const auto encoder = question[audio_encoder];
  const auto shape = question.shape(audio, "waveform");
  const Value rate = question.part(audio, "sample_rate");
  if (!encoder || !shape || shape->size() != 3 || !rate) return;
  const Value model = encoder->field("model");
  if (!model.is(HEDDLE_KIND_MODEL) || rate.as<std::int64_t>() < 1) return;
  const SoundSizes sizes =
      sizes_of(model_settings(model), (*shape)[0],
               blocks::resampled_count((*shape)[2], rate.as<std::int64_t>(), kSoundRate));
  if (sizes.states == 0) return;
  question.call(model, {{{{sizes.input_name(), HEDDLE_F32, sizes.input()}}, {}}});
  question.out(heard, "encoded_audio", HEDDLE_F32, {sizes.items, sizes.states, sizes.width});
  question.out(heard, "encoded_audio_all_layers", HEDDLE_F32,
               {sizes.layers + 1, sizes.items, sizes.states, sizes.width});
  std::uint64_t numbers = std::uint64_t((*shape)[2]) * std::uint64_t((*shape)[1] + 1);
  for (const std::int64_t count : {sizes.points, sizes.frames * sizes.bands})
    numbers += std::uint64_t(count);
  question.host_scratch(sizeof(float) * numbers * std::uint64_t(sizes.items));
}

}  // namespace heddle::encoders
