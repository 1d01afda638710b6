#include "plugins/video/sound_nodes.h"

#include <algorithm>
#include <cmath>
#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>

#include "plugins/blocks/input_file.h"
#include "plugins/video/biquad.h"
#include "plugins/video/read_sound.h"
#include "plugins/video/sound_math.h"

namespace heddle::video {
namespace {

std::uint64_t identify_input(Context& ctx, const std::string& name) {
  std::uint64_t hash = 0;
  check(service<heddle_folders_service>().identify(ctx.raw(), blocks::find_input(ctx, name).c_str(),
                                                   &hash));
  return hash;
}

std::string recorded_file(Context& ctx) {
  const Value name = ctx[RecordAudio::audio];
  if (!name.is(HEDDLE_KIND_STR) || name.text().empty())
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "audio: nothing is recorded. Give the name of a file in the input folder.");
  return name.as<std::string>();
}

Shape silence(double seconds, std::int64_t rate, std::int64_t channels) {
  return {1, channels, checked_round(seconds * static_cast<double>(rate), "duration")};
}

Shape latent_shape(double seconds, std::int64_t batch) {
  // 2048 samples of 44.1 kHz to a step, an even number of steps.
  return {batch, 64, checked_round(seconds * 44100 / 2048 / 2, "seconds") * 2};
}

// The second where the first is None, and the other way round; nothing where both are there.
std::optional<Value> only_one(const Value& one, const Value& two) {
  if (one.is(HEDDLE_KIND_NONE)) return two;
  if (two.is(HEDDLE_KIND_NONE)) return one;
  return std::nullopt;
}

void require_mono(const Sound& sound, const char* port) {
  if (sound.channels() != 1)
    throw Error(HEDDLE_INVALID_ARGUMENT, std::string(port) + ": a channel is one, this sound has " +
                                             std::to_string(sound.channels()) +
                                             ". Split it first (SplitAudioChannels).");
}

}  // namespace

Refusal LoadAudio::validate(Validation& question) {
  if (!question[audio] || question.has_file(audio, "input")) return {};
  return "Invalid audio file: " + *question[audio];
}

void LoadAudio::execute(Context& ctx) {
  ctx[out] = to_value(read_sound(ctx, blocks::find_input(ctx, ctx[audio])));
}
std::uint64_t LoadAudio::fingerprint(Context& ctx) { return identify_input(ctx, ctx[audio]); }

void RecordAudio::execute(Context& ctx) {
  ctx[out] = to_value(read_sound(ctx, blocks::find_input(ctx, recorded_file(ctx))));
}
std::uint64_t RecordAudio::fingerprint(Context& ctx) {
  return identify_input(ctx, recorded_file(ctx));
}

void EmptyAudio::execute(Context& ctx) {
  const Tensor zeros =
      ctx.make_host(silence(ctx[duration], ctx[sample_rate], ctx[channels]), HEDDLE_F32);
  std::fill_n(zeros.data<float>(), zeros.count(), 0.0f);
  ctx[out] = to_value(Sound{zeros, ctx[sample_rate]});
}
void EmptyAudio::infer(Infer& question) {
  const auto seconds = question[duration];
  const auto rate = question[sample_rate], count = question[channels];
  if (seconds && rate && count)
    question.out(out, "waveform", HEDDLE_F32, silence(*seconds, *rate, *count));
  if (rate) question.known(out, "sample_rate", value_of(*rate));
}

void TrimAudioDuration::execute(Context& ctx) {
  const Value given = ctx[audio];
  const std::optional<Sound> sound = sound_or_none(given, "audio");
  if (!sound || sound->samples() == 0) {
    ctx[out] = given;
    return;
  }
  const double length = static_cast<double>(sound->samples());
  const auto rate = static_cast<double>(sound->sample_rate);
  const double start = std::nearbyint(ctx[start_index] * rate);
  const double first = std::clamp(start < 0 ? length + start : start, 0.0, length);
  const double last = std::clamp(first + std::nearbyint(ctx[duration] * rate), 0.0, length);
  if (first >= last)
    throw Error(HEDDLE_INVALID_ARGUMENT, "start_index: nothing is left of the sound of " +
                                             std::to_string(length / rate) +
                                             " s. Give a start within it and a duration above 0.");
  ctx[out] = to_value(Sound{
      sound->waveform.slice(2, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)),
      sound->sample_rate});
}

void SplitAudioChannels::execute(Context& ctx) {
  const Value given = ctx[audio];
  const std::optional<Sound> sound = sound_or_none(given, "audio");
  if (!sound) {
    ctx[left] = given;
    ctx[right] = given;
    return;
  }
  if (sound->channels() != 2)
    throw Error(HEDDLE_INVALID_ARGUMENT, "audio: a stereo sound has 2 channels, this has " +
                                             std::to_string(sound->channels()) + ".");
  ctx[left] = to_value(Sound{sound->waveform.slice(1, 0, 1), sound->sample_rate});
  ctx[right] = to_value(Sound{sound->waveform.slice(1, 1, 2), sound->sample_rate});
}

void JoinAudioChannels::execute(Context& ctx) {
  const Value one = ctx[audio_left], two = ctx[audio_right];
  if (const std::optional<Value> only = only_one(one, two)) {
    ctx[out] = *only;
    return;
  }
  Sound first = sound_of(one, "audio_left"), second = sound_of(two, "audio_right");
  require_mono(first, "audio_left");
  require_mono(second, "audio_right");
  match_rates(ctx, first, second);
  ctx[out] = to_value(as_channels(ctx, first, second));
}

void AudioConcat::execute(Context& ctx) {
  const Value one = ctx[audio1], two = ctx[audio2];
  if (const std::optional<Value> only = only_one(one, two)) {
    ctx[out] = *only;
    return;
  }
  Sound first = stereo(ctx, sound_of(one, "audio1")), second = stereo(ctx, sound_of(two, "audio2"));
  match_rates(ctx, first, second);
  if (ctx[direction] == "before") std::swap(first, second);
  ctx[out] = to_value(one_after_another(ctx, first, second));
}

void AudioMerge::execute(Context& ctx) {
  const Value one = ctx[audio1], two = ctx[audio2];
  if (const std::optional<Value> only = only_one(one, two)) {
    ctx[out] = *only;
    return;
  }
  Sound first = sound_of(one, "audio1"), second = sound_of(two, "audio2");
  match_rates(ctx, first, second);
  ctx[out] = to_value(first.samples() == 0 || second.samples() == 0
                          ? first
                          : mixed(ctx, first, second, ctx[merge_method]));
}

void AudioAdjustVolume::execute(Context& ctx) {
  const Value given = ctx[audio];
  const std::optional<Sound> sound = sound_or_none(given, "audio");
  if (!sound || ctx[volume] == 0) {
    ctx[out] = given;
    return;
  }
  const auto gain = static_cast<float>(std::pow(10.0, static_cast<double>(ctx[volume]) / 20));
  const Sound louder = copied(ctx, *sound);
  for (float& sample : samples_of(louder)) sample *= gain;
  ctx[out] = to_value(louder);
}

void AudioEqualizer3Band::execute(Context& ctx) {
  const Value given = ctx[audio];
  const std::optional<Sound> sound = sound_or_none(given, "audio");
  if (!sound || sound->samples() == 0) {
    ctx[out] = given;
    return;
  }
  const auto rate = static_cast<double>(sound->sample_rate);
  std::vector<Biquad> filters;
  if (const double gain = ctx[low_gain]; gain != 0)
    filters.push_back(low_shelf({gain, static_cast<double>(ctx[low_freq])}, rate));
  if (const double gain = ctx[mid_gain]; gain != 0)
    filters.push_back(peak({gain, static_cast<double>(ctx[mid_freq]), ctx[mid_q]}, rate));
  if (const double gain = ctx[high_gain]; gain != 0)
    filters.push_back(high_shelf({gain, static_cast<double>(ctx[high_freq])}, rate));
  const Sound changed = copied(ctx, *sound);
  const std::span<float> all = samples_of(changed);
  const auto run = static_cast<std::size_t>(changed.samples());
  for (const Biquad& biquad : filters)
    for (std::size_t at = 0; at < all.size(); at += run) filter(biquad, all.subspan(at, run));
  ctx[out] = to_value(changed);
}

void EmptyLatentAudio::execute(Context& ctx) {
  const Tensor zeros = ctx.make_host(latent_shape(ctx[seconds], ctx[batch_size]), HEDDLE_F32);
  std::fill_n(zeros.data<float>(), zeros.count(), 0.0f);
  ctx[out] = Record().set("samples", value_of(zeros)).set("type", value_of("audio")).value();
}
void EmptyLatentAudio::infer(Infer& question) {
  const auto length = question[seconds];
  const auto batch = question[batch_size];
  if (length && batch) question.out(out, "samples", HEDDLE_F32, latent_shape(*length, *batch));
}

}  // namespace heddle::video
