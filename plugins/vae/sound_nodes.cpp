#include "plugins/vae/sound_nodes.h"

#include <cmath>
#include <span>
#include <string>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/model.hpp>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/sound_latents.h"
#include "plugins/vae/ltxv_audio_nodes.h"

namespace heddle::vae {
namespace {

constexpr double kLoudest = 5;  // deviations

// Divides a sound's points by five times their deviation, where that exceeds 1.
void make_quieter(std::span<float> points) {
  if (points.size() < 2) return;
  double sum = 0, squares = 0;
  for (const float point : points) sum += point;
  const double mean = sum / double(points.size());
  for (const float point : points) squares += (point - mean) * (point - mean);
  const double loud = kLoudest * std::sqrt(squares / double(points.size() - 1));
  if (loud > 1)
    for (float& point : points) point = float(point / loud);
}

Value sound_value(const Tensor& waveform, std::int64_t rate) {
  return Record().set("waveform", value_of(waveform)).set("sample_rate", value_of(rate)).value();
}

}  // namespace

Value encoded_audio(Context& ctx, const Value& given, const Value& value) {
  HostMemory memory(ctx);
  const StereoSound sound = stereo_sound(ctx, given, "audio", sound_rate(value, "vae"), memory);
  const Tensor mean = encoded_sound(ctx, value, sound.points, sound.shape);
  return Record().set("samples", value_of(mean)).set("scaled", value_of(true)).value();
}

std::optional<Shape> tell_encoded_audio(Infer& question, const Input<Value>& audio,
                                        const Input<Value>& vae) {
  const std::optional<Shape> waveform = question.shape(audio, "waveform");
  const Value rate = question.part(audio, "sample_rate");
  const std::optional<Value> value = question[vae];
  if (!waveform || !rate || !value || !value->has("audio")) return {};
  const std::optional<Shape> sound =
      stereo_shape(*waveform, rate.as<std::int64_t>(), sound_rate(*value, "vae"));
  if (!sound) return {};
  question.host_scratch(sizeof(float) * std::uint64_t(checked_sum(
                                            {count_of(*waveform), count_of(*sound)}, "the sound")));
  return tell_encoded_sound(question, *value, *sound);
}

void VAEDecodeAudio::execute(Context& ctx) {
  const MadeSound made = decoded_sound(ctx, ctx[vae], ctx[samples]);
  const Tensor there = ctx.make_host(made.waveform.shape(), HEDDLE_F32);
  const std::span<float> points(there.data<float>(), std::size_t(there.count()));
  read_to<float>(ctx, made.waveform, points);
  const std::size_t each = points.size() / std::size_t(there.size(0));
  for (std::size_t item = 0; item < std::size_t(there.size(0)); ++item)
    make_quieter(points.subspan(item * each, each));
  ctx[audio] = sound_value(there, made.rate);
}

void VAEDecodeAudio::infer(Infer& question) {
  auto shape = question.shape(samples, "samples");
  if (!shape) shape = question.shape(samples, "samples.1");
  const std::optional<Value> value = question[vae];
  if (!shape || !value) return;
  const std::optional<Shape> sound = tell_decoded_sound(question, *value, *shape);
  if (!sound) return;
  question.out(audio, "waveform", HEDDLE_F32, *sound);
  std::uint64_t bytes = sizeof(float);
  for (const std::int64_t size : *sound) bytes *= std::uint64_t(size);
  question.host_scratch(bytes);
}

void VAEEncodeAudio::execute(Context& ctx) {
  ctx[latent] = encoded_audio(ctx, ctx[audio], ctx[vae]);
}

void VAEEncodeAudio::infer(Infer& question) {
  if (const auto shape = tell_encoded_audio(question, audio, vae))
    question.out(latent, "samples", HEDDLE_F32, *shape);
}

void LTXVAudioVAEEncode::execute(Context& ctx) {
  ctx[latent] = encoded_audio(ctx, ctx[audio], ctx[audio_vae]);
}

void LTXVAudioVAEEncode::infer(Infer& question) {
  if (const auto shape = tell_encoded_audio(question, audio, audio_vae))
    question.out(latent, "samples", HEDDLE_F32, *shape);
}

}  // namespace heddle::vae
